package logs

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestALineOfTheServerHasFields(t *testing.T) {
	for line, want := range map[string]string{
		"2026-11-25 02:00:00.123 UTC [7] db=app,user=shop,app=psql, 2,client=10.0.0.1 ERROR:  division by zero": `{` +
			`"timestamp":"2026-11-25 02:00:00.123 UTC","pid":7,"dbname":"app","user":"shop",` +
			`"application_name":"psql, 2","remote_host":"10.0.0.1","error_severity":"ERROR",` +
			`"message":"division by zero"}`,
		"2026-11-25 02:00:00.123 UTC [7] db=,user=,app=,client= LOG:  checkpoint complete: wrote 3 buffers": `{` +
			`"timestamp":"2026-11-25 02:00:00.123 UTC","pid":7,"error_severity":"LOG",` +
			`"message":"checkpoint complete: wrote 3 buffers"}`,
		"2026-11-25 02:00:00.123 UTC [7] db=a,user=b,app=c,client=[local] STATEMENT:  SELECT 1/0": `{` +
			`"timestamp":"2026-11-25 02:00:00.123 UTC","pid":7,"dbname":"a","user":"b","application_name":"c",` +
			`"remote_host":"[local]","error_severity":"STATEMENT","message":"SELECT 1/0"}`,
		"\tFROM orders": "null",
		agentLine:       "null",
	} {
		got, err := json.Marshal(fieldsOf(line))
		if err != nil || string(got) != want {
			t.Errorf("%q:\n%s, wanted\n%s (%v)", line, got, want, err)
		}
	}
	page, err := os.ReadFile("../../../docs/kubectl-toban.md")
	if err != nil || !strings.Contains(string(page), "\n"+serverLine+"\n") {
		t.Errorf("docs/kubectl-toban.md has not %s: %v", serverLine, err)
	}
}
