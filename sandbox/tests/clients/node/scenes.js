// Runs one scene through tedious and prints what it saw as JSON: node scenes.js FOLDER PORT PASSWORD SCENE
'use strict';
const path = require('path');

const [folder, port, password, scene] = process.argv.slice(2);
const tedious = require(path.join(folder, 'node_modules', 'tedious'));
const { Connection, Request, TYPES, ISOLATION_LEVEL } = tedious;

function connect(more = {}) {
  return new Promise((resolve, reject) => {
    const connection = new Connection({
      server: '127.0.0.1',
      authentication: { type: 'default', options: { userName: 'sa', password } },
      options: {
        port: Number(port), encrypt: false, trustServerCertificate: true, database: 'master', useUTC: true,
        requestTimeout: 20000, connectTimeout: 15000, ...more,
      },
    });
    connection.on('connect', (error) => (error ? reject(error) : resolve(connection)));
    connection.on('error', () => {});
    connection.connect();
  });
}

function run(connection, sql, { parameters = [], how = 'execSql', outputs, timeout } = {}) {
  return new Promise((resolve, reject) => {
    const rows = [];
    const values = {};
    const request = new Request(sql, (error, count) => {
      if (error) reject(error);
      else resolve({ rows, count, values });
    });
    for (const [name, type, value, options] of parameters) request.addParameter(name, type, value, options);
    for (const [name, type] of outputs || []) request.addOutputParameter(name, type);
    request.on('row', (columns) => rows.push(columns.map((column) => shown(column.value))));
    request.on('returnValue', (name, value) => { values[name] = shown(value); });
    if (timeout) request.setTimeout(timeout);
    connection[how](request);
  });
}

function shown(value) {
  if (Buffer.isBuffer(value)) return value.toString('hex');
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'bigint' ? String(value) : value;
}

function step(connection, name, ...given) {
  return new Promise((resolve, reject) => {
    connection[name]((error) => (error ? reject(error) : resolve()), ...given);
  });
}

function failure(promise) {
  return promise.then(() => 'no error', (error) => [error.code, error.number]);
}

const at = new Date(Date.UTC(2024, 1, 29, 12, 30, 15, 120));
const EVERY = [
  ['bit', TYPES.Bit, true], ['tinyint', TYPES.TinyInt, 200], ['smallint', TYPES.SmallInt, -3],
  ['int', TYPES.Int, 7], ['bigint', TYPES.BigInt, '9007199254740993'], ['real', TYPES.Real, 0.5],
  ['float', TYPES.Float, 0.1], ['decimal(9,2)', TYPES.Decimal, -12.25, { precision: 9, scale: 2 }],
  ['money', TYPES.Money, 12.5], ['date', TYPES.Date, new Date(Date.UTC(2024, 1, 29))],
  ['time(3)', TYPES.Time, new Date(Date.UTC(1970, 0, 1, 12, 30, 15, 120)), { scale: 3 }],
  ['datetime', TYPES.DateTime, at], ['smalldatetime', TYPES.SmallDateTime, new Date(Date.UTC(2024, 1, 29, 12, 30))],
  ['datetime2(3)', TYPES.DateTime2, at, { scale: 3 }], ['datetimeoffset(3)', TYPES.DateTimeOffset, at, { scale: 3 }],
  ['char(3)', TYPES.Char, 'abc', { length: 3 }], ['varchar(10)', TYPES.VarChar, 'caf\u00e9', { length: 10 }],
  ['varchar(max)', TYPES.VarChar, 'x'.repeat(9000), { length: Infinity }],
  ['nvarchar(10)', TYPES.NVarChar, '\u4e2d', { length: 10 }],
  ['nvarchar(max)', TYPES.NVarChar, '\u4e2d'.repeat(5000), { length: Infinity }],
  ['varbinary(5)', TYPES.VarBinary, Buffer.from([1, 2, 3]), { length: 5 }],
  ['varbinary(max)', TYPES.VarBinary, Buffer.alloc(9000, 7), { length: Infinity }],
  ['uniqueidentifier', TYPES.UniqueIdentifier, '6F9619FF-8B86-D011-B42D-00C04FC964FF'],
  ['text', TYPES.Text, 'old'], ['image', TYPES.Image, Buffer.from([10, 11])],
];

const scenes = {
  async types() {
    const connection = await connect();
    const seen = [];
    for (const [declared, type, value, options] of EVERY) {
      const parameters = [['p', type, value, options], ['n', type, null, options]];
      const sql = `SELECT CAST(@p AS ${declared}), CAST(@n AS ${declared})`;
      const { rows } = await run(connection, sql, { parameters });
      seen.push([declared, JSON.stringify(rows[0][0]) === JSON.stringify(shown(value)), rows[0][1]]);
    }
    connection.close();
    return seen;
  },

  async transactions() {
    const connection = await connect();
    await run(connection, 'DROP TABLE IF EXISTS dbo.node_t; CREATE TABLE dbo.node_t (a int)', { how: 'execSqlBatch' });
    await step(connection, 'beginTransaction', 'one', ISOLATION_LEVEL.SERIALIZABLE);
    await run(connection, 'INSERT dbo.node_t VALUES (1)');
    await step(connection, 'saveTransaction', 'mark');
    await run(connection, 'INSERT dbo.node_t VALUES (2)');
    await step(connection, 'rollbackTransaction', 'mark');
    await step(connection, 'commitTransaction');
    await step(connection, 'beginTransaction');
    await run(connection, 'INSERT dbo.node_t VALUES (3)');
    await step(connection, 'rollbackTransaction');
    const { rows } = await run(connection, 'SELECT a FROM dbo.node_t');
    connection.close();
    return rows;
  },

  async bulk() {
    const connection = await connect();
    const columns = EVERY.map(([declared], n) => `c${n} ${declared} NULL`).join(', ');
    await run(connection, `DROP TABLE IF EXISTS dbo.node_bulk; CREATE TABLE dbo.node_bulk (${columns})`,
      { how: 'execSqlBatch' });
    const bulk = { keepNulls: true };
    const count = await new Promise((resolve, reject) => {
      const load = connection.newBulkLoad('dbo.node_bulk', bulk, (error, rows) => (error ? reject(error) : resolve(rows)));
      EVERY.forEach(([, type, , options], n) => load.addColumn(`c${n}`, type, { nullable: true, ...options }));
      connection.execBulkLoad(load, [EVERY.map(([, , value]) => value), EVERY.map(() => null)]);
    });
    const { rows } = await run(connection, 'SELECT * FROM dbo.node_bulk');
    connection.close();
    const same = EVERY.map(([, , value], n) => JSON.stringify(rows[0][n]) === JSON.stringify(shown(value)));
    const different = EVERY.filter((_, n) => !same[n]).map(([declared]) => declared);
    return { count, different, nulls: rows[1].every((value) => value === null) };
  },

  async tables() {
    const connection = await connect();
    await run(connection, "IF TYPE_ID('dbo.node_pairs') IS NULL EXEC ('CREATE TYPE dbo.node_pairs AS TABLE (id int PRIMARY KEY, "
      + "name nvarchar(20))')", { how: 'execSqlBatch' });
    await run(connection, 'CREATE OR ALTER PROCEDURE dbo.node_take @rows dbo.node_pairs READONLY, @n int OUTPUT AS '
      + 'SELECT * FROM @rows ORDER BY id; SELECT @n = COUNT(*) FROM @rows', { how: 'execSqlBatch' });
    const value = {
      columns: [{ name: 'id', type: TYPES.Int }, { name: 'name', type: TYPES.NVarChar, length: 20 }],
      rows: [[2, 'two'], [1, null], [3, '\u4e2d']],
    };
    const answer = await run(connection, 'dbo.node_take',
      { parameters: [['rows', TYPES.TVP, value]], outputs: [['n', TYPES.Int]], how: 'callProcedure' });
    connection.close();
    return [answer.rows, answer.values];
  },

  async prepared() {
    const connection = await connect();
    const rows = [];
    const request = new Request('SELECT @a * 2', () => {});
    request.addParameter('a', TYPES.Int);
    await new Promise((resolve, reject) => {
      request.on('prepared', resolve);
      request.on('error', reject);
      connection.prepare(request);
    });
    request.on('row', (columns) => rows.push(columns[0].value));
    for (const a of [1, 2, 3]) {
      await new Promise((resolve, reject) => {
        request.callback = (error) => (error ? reject(error) : resolve());
        connection.execute(request, { a });
      });
    }
    await new Promise((resolve) => { request.callback = resolve; connection.unprepare(request); });
    connection.close();
    return rows;
  },

  async cancel() {
    const connection = await connect();
    const timedOut = await failure(run(connection, "WAITFOR DELAY '00:01:00'", { timeout: 500 }));
    const { rows } = await run(connection, 'SELECT 1');
    const missing = await failure(run(connection, 'SELECT * FROM dbo.missing_table'));
    const twice = await failure(run(connection, 'SELECT 1/0'));
    connection.close();
    return [timedOut, rows, missing, twice];
  },

  async encrypted() {
    const connection = await connect({ encrypt: true });
    const { rows } = await run(connection, 'SELECT encrypt_option FROM sys.dm_exec_connections WHERE session_id = @@SPID');
    connection.close();
    return rows;
  },

  async wrong() {
    const bad = new Connection({
      server: '127.0.0.1', authentication: { type: 'default', options: { userName: 'sa', password: `${password}x` } },
      options: { port: Number(port), encrypt: false },
    });
    return new Promise((resolve) => {
      bad.on('error', () => {});
      bad.on('connect', (error) => { bad.close(); resolve(error ? [error.code, error.cause && error.cause.number] : 'no error'); });
      bad.connect();
    });
  },
};

scenes[scene]().then(
  (seen) => { process.stdout.write(JSON.stringify(seen)); process.exit(0); },
  (error) => { process.stderr.write(String((error && error.stack) || error)); process.exit(1); },
);
