// Writes rows with node-postgres until it is ended. See test/clients/README.md.
'use strict'

const fs = require('fs')
const { Client } = require('pg')

const [folder, key, name] = process.argv.slice(2)
const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

async function connect () {
  const connectionString = fs.readFileSync(`${folder}/${key}`, 'utf8')
  const session = new Client({ connectionString, connectionTimeoutMillis: 5000 })
  session.on('error', () => {}) // the next statement fails as well
  await session.connect()
  return session
}

async function work (worker) {
  let session
  for (let row = 1; ; row++) {
    try {
      session = session || await connect()
      await session.query('INSERT INTO written VALUES ($1, $2)', [worker, row])
      console.log('ok', worker, row)
    } catch (error) {
      console.log('error', worker, row, error.message)
      if (session) session.end().catch(() => {})
      session = undefined
      await pause(100)
    }
    await pause(20)
  }
}

for (let i = 0; i < 2; i++) work(`${name}-${i}`)
