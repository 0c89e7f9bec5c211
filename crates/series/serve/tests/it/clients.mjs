// What a program does with ClickHouse's own client of Node: each step says what it got, a line each.
import { createClient } from '@clickhouse/client'

const client = createClient({ url: process.argv[2], log: { LoggerClass: class { trace() {} debug() {} info() {} warn() {} error() {} } } })
const say = async (what, work) => {
  try {
    console.log(what, JSON.stringify(await work()))
  } catch (error) {
    console.log(what, 'failed', error.code, error.type)
  }
}
const ask = async (query, format, more = {}) => (await client.query({ query, format, ...more })).json()

await say('ping', async () => (await client.ping()).success)
await say('create', async () => {
  await client.command({ query: 'CREATE TABLE ticks (ts TIMESTAMP(9), sym SYMBOL, price DOUBLE, size BIGINT)' })
})
const values = [
  { ts: '2026-01-01 00:00:00', sym: "it's", price: 1.5, size: 1 },
  { ts: '2026-01-01 00:00:01', sym: 'b', price: 2.5, size: 2 },
]
await say('insert', async () => (await client.insert({ table: 'ticks', values, format: 'JSONEachRow' })).summary.written_rows)
await say('rows', () => ask('SELECT sym, price FROM ticks ORDER BY ts', 'JSONEachRow'))
await say('json', async () => (await ask('SELECT size FROM ticks ORDER BY ts', 'JSON')).data)
await say('compact', () => ask('SELECT sym, size FROM ticks ORDER BY ts', 'JSONCompactEachRowWithNamesAndTypes'))
await say('values', () =>
  ask('SELECT sum(size) AS n FROM {table: Identifier} WHERE sym = {sym: String} AND price < {most: Float64}', 'JSONEachRow', {
    query_params: { table: 'ticks', sym: "it's", most: 2 },
  }),
)
await say('stream', async () => {
  const result = await client.query({ query: 'SELECT value FROM generate_series(1, 100000)', format: 'JSONEachRow' })
  let sum = 0
  for await (const rows of result.stream()) for (const row of rows) sum += row.json().value
  return sum
})
await say('late', () => ask('SELECT sum(a.value + b.value) FROM generate_series(1, 100000) a, generate_series(1, 100000) b', 'JSON', {
  clickhouse_settings: { max_execution_time: 0.2 },
}))
await say('column', () => ask('SELECT nothing FROM ticks', 'JSON'))
await client.close()
