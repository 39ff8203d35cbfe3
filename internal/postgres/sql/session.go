// Package sql has what every session of ours with a PostgreSQL server asks for when it begins, and how ours are
// told from those of others; how one is opened and ended; how names and texts are quoted, and PostgreSQL's errors told.
// It must not import anything of ours.
package sql

import (
	"maps"
	"slices"
	"strings"
)

// superuser is the role that may set what only a superuser may.
const superuser = "postgres"

// pinned are what an owner of a database could otherwise set for our sessions there, by ALTER DATABASE … SET. What a
// client asks for in its startup packet counts before that (PostgreSQL 17 documentation, 19.1.3), also "role" and
// "session_authorization", with which our statements would run as somebody else.
var pinned = map[string]string{
	"role":                                "none",
	"search_path":                         "pg_catalog",
	"client_encoding":                     "UTF8",
	"standard_conforming_strings":         "on",
	"transform_null_equals":               "off",
	"datestyle":                           "ISO, MDY",
	"row_security":                        "on",
	"synchronous_commit":                  "on",
	"default_transaction_read_only":       "off",
	"default_transaction_isolation":       "read committed",
	"default_transaction_deferrable":      "off",
	"default_tablespace":                  "",
	"default_table_access_method":         "heap",
	"local_preload_libraries":             "",
	"statement_timeout":                   "0",
	"lock_timeout":                        "0",
	"idle_session_timeout":                "0",
	"idle_in_transaction_session_timeout": "0",
	// By geqo_pool_size, each query over several tables can be made to ask for more memory than there is.
	"geqo":          "off",
	"exit_on_error": "off",
}

// newer are pinned besides on a server of a major version that has them. Event triggers at login are a user's code, by
// which every session of ours may fail, for ever on a standby where it writes (PostgreSQL 17 documentation, 38.1); only
// a superuser's session may do without them (19.11.1).
var newer = []struct {
	since       int
	name, value string
	superuser   bool
}{
	{17, "transaction_timeout", "0", false},
	{17, "event_triggers", "off", true},
}

// Newest is a major version that has all that is pinned.
const Newest = 17

// TriggersOn is the statement after which event triggers are fired again in a superuser's session with SettingsAt: it
// has begun, and what it changes from now on is to be seen by those that look for changes.
const TriggersOn = "set event_triggers = on"

// SettingsAt is Settings for a server of a known major version.
func SettingsAt(major int, role string, own map[string]string) map[string]string {
	out := Settings(role, nil)
	for _, n := range newer {
		if major >= n.since && (!n.superuser || role == superuser) {
			out[n.name] = n.value
		}
	}
	maps.Copy(out, own)
	return out
}

// Settings are the settings of a session of a role as they have to be in the startup packet, with those
// of the caller before ours.
func Settings(role string, own map[string]string) map[string]string {
	out := maps.Clone(pinned)
	out["session_authorization"] = role
	maps.Copy(out, own)
	return out
}

// Application is how the names begin by which our own sessions are told from those of a person who is the superuser.
const Application = "toban"

// Clients says of a row of pg_stat_activity that it is a session which may write, and is none of ours: neither of a
// role that nobody else can log in as, nor the superuser's with a name of ours. A person with psql who is postgres is a
// client. One of which it is not known yet whose it is (PostgreSQL 18) is none: see Process.EndLogins of package
// postgres. Users' queries for metrics can't write.
const Clients = `backend_type in ('client backend', 'walsender') and state is distinct from 'starting'
	and not coalesce(usename in ('toban_replication', 'toban_backup', 'toban_link', 'toban_metrics')
		or usename = 'postgres' and starts_with(application_name, '` + Application + `'), false)`

// Busy says of a row of pg_stat_activity that its session does something at the moment. Where a session, its role, its
// database or the server has track_activities = off, its state is 'disabled' and no time of it is known. Then it counts
// while it has a snapshot, as every statement has that reads or writes.
const Busy = `(state in ('active', 'fastpath function call') or state = 'disabled' and backend_xmin is not null)`

// OptionsVariable gives settings to a session of psql, or of another one of PostgreSQL's programs, in its environment
// (PostgreSQL 17 documentation, 34.1.2, "options": spaces separate options, and stand behind a backslash in one).
func OptionsVariable(settings map[string]string) string {
	// Each is set after the one before: session_authorization resets role.
	names := []string{"session_authorization"}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if name != "session_authorization" && name != "role" {
			names = append(names, name)
		}
	}
	escape := strings.NewReplacer(`\`, `\\`, ` `, `\ `)
	var words []string
	for _, name := range append(names, "role") {
		if value, is := settings[name]; is {
			words = append(words, "-c "+name+"="+escape.Replace(value))
		}
	}
	return "PGOPTIONS=" + strings.Join(words, " ")
}

// MaxName is how many bytes PostgreSQL keeps of a name (NAMEDATALEN - 1). It cuts off the rest with no more than a
// notice: what is looked for by the whole name afterwards is not there, or somebody else's.
const MaxName = 63
