/**
 * What the server sends: see dashboard/frames.py, dashboard/sampler.py and plan/explain/query_picture.py.
 *
 * @typedef {{name: string, kind: "stream"|"operator"|"query", title: string, text: string, queries: string[],
 *   clause: string}} PictureNode
 * @typedef {{producer: string, consumer: string, port: number, exchange: string}} PictureArc
 * @typedef {{sink: string, columns: string[], options: Object<string, string>}} PictureQuery
 * @typedef {{number: number, nodes: PictureNode[], arcs: PictureArc[], ets_arcs: [string, string][],
 *   queries: Object<string, PictureQuery>}} Picture
 *
 * @typedef {{rows: number, p50: number, p99: number, p999: number, max: number, declared: number|null,
 *   sentence: string, advice: string, bars: [number, number][]}} Disorder
 * @typedef {{received: number, rate: number|null, processed: number, late: number, quarantined: number,
 *   buffered: number, shed: number, superseded: number, ets: number, bound: string|null, greatest: string|null,
 *   lag: number|null, bound_age: number|null, heard: number|null, ended: boolean, silent: boolean,
 *   contract: string, disorder: Disorder|null,
 *   parts: {name: string, bound: string|null, heard: number|null}[]}} StreamFrame
 * @typedef {{rows_in: number, rows_out: number, punctuations: number, cost: number, idle: number, waiting: number,
 *   held: number, state_bytes: number, bound: string|null, in_rate: number|null, out_rate: number|null,
 *   busy: number|null, idle_share: number|null}} OperatorFrame
 * @typedef {{stream: string, streams: string[], held: number, since: number|null, stuck: boolean, sentence: string,
 *   lines: string[], ets_in: number|null}} WaitFrame
 * @typedef {{policy: string, keys: number, waiting: number, superseded: number, shed: number, staleness: number,
 *   oldest: number}} QueueFrame
 * @typedef {{rows: number, rate: number|null, latency: {rows: number, p50: number, p99: number, max: number}|null,
 *   queue: QueueFrame|null, modes: {mode: string, switches: number}[], wait: WaitFrame|null}} QueryFrame
 * @typedef {{batch: number, seconds: number, spark: Object<string, number>,
 *   tasks: Object<string, number>, state: Object<string, number>,
 *   buckets: {held: number, state_bytes: number}[]}} BatchFrame
 * @typedef {{number: number, at: number, now: number, as_of: number, age: number, clock: string, elapsed: number, steps: number, held: number,
 *   state_bytes: number, streams: Object<string, StreamFrame>, operators: Object<string, OperatorFrame>,
 *   arcs: [string, string, number, number, string|null][], queries: Object<string, QueryFrame>,
 *   verdict: string[], batches: BatchFrame[], picture: number}} Frame
 *
 * @typedef {{numbers: number[], times: number[], values: Object<string, (number|null)[]>}} Curves
 */
export {};
