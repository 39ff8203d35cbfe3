package status

import (
	"bytes"
	"strings"
	"testing"
)

// answered is what a server has answered to the script; json_agg breaks lines.
const answered = `{"at" : "2026-11-25T02:00:00.5+00:00", "role" : "primary", "connections" : 4, "maxConnections" : 100}
[{"state":"idle","wait":null,"sessions":2}, 
 {"state":"active","wait":"Lock:transactionid","sessions":1}]
[{"pid":11,"user":"app","database":"app","application":"","client":"local","state":"active",` +
	`"wait":"Lock:transactionid","transactionSeconds":61.2,"statementSeconds":0.0214,` +
	`"statement":"UPDATE t\n SET a = 'x'"}]
[{"pid":11,"waitSeconds":12.34,"lock":"ShareLock on transactionid","statement":"UPDATE t",` +
	`"by":[{"pid" : 10, "user" : "app", "database" : "app", "application" : null, "state" : "idle in transaction", ` +
	`"statement" : "DELETE"}]}]`

func TestASnapshotIsShown(t *testing.T) {
	shown := shownTop{Namespace: "n", Name: "x", Instance: "x-0", Database: "app"}
	if err := shown.read([]byte(answered)); err != nil {
		t.Fatal(err)
	}
	text := func() string {
		var out bytes.Buffer
		if err := shown.write(&out); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	for _, want := range []string{
		"n/x: x-0, primary, at 2026-11-25T02:00:00Z: 4 connections of 100", "2 idle -", "1 active Lock:transactionid",
		"11 app app - local active Lock:transactionid 1m1.2s 21.4ms UPDATE t SET a = 'x'",
		"11 12.3s ShareLock on transactionid UPDATE t 10 idle in transaction DELETE",
		"no statistics of statements",
	} {
		if !strings.Contains(text(), want) {
			t.Errorf("it does not show %q:\n%s", want, text())
		}
	}
	const statements = `[{"user":"app","database":"app","calls":7,"totalSeconds":1.5,"meanSeconds":0.2,` +
		`"rows":9,"statement":"S"}]`
	if err := shown.read([]byte(answered + statements)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text(), "1.5s 200ms 7 9 app app S") {
		t.Errorf("it does not show the statements:\n%s", text())
	}
	if err := shown.read([]byte("psql: error")); err == nil {
		t.Error("it understands what is none")
	}
}

func TestAStatementIsShownInOneLine(t *testing.T) {
	if got := oneLine("SELECT\n\t1"); got != "SELECT 1" {
		t.Error(got)
	}
	got := []rune(oneLine(strings.Repeat("ä ", 100)))
	if len(got) != statementWidth || got[statementWidth-1] != '…' {
		t.Errorf("%d: %s", len(got), string(got))
	}
}
