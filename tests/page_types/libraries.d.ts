/** The libraries in static/vendor, which the page loads as scripts. */
declare const dagre: any;
declare const uPlot: any;
