package report

import (
	"encoding/json"
	"strings"
	"testing"
)

// hidden is what must not be left of a text.
const hidden = "h1dden"

func TestNoSecretIsLeftInAText(t *testing.T) {
	for _, text := range []string{
		"postgresql://app:" + hidden + "@shop:5432/app", "postgres://u:" + hidden + "@" + hidden + "@host/db",
		"password=" + hidden, "PGPASSWORD=" + hidden + " psql", "password = '" + hidden + " ''" + hidden + "'",
		"host=a sslpassword=" + hidden + " port=1", `"password": "` + hidden + `\"` + hidden + `"`,
		`{"msg":"it says {\"password\":\"` + hidden + `\",\"a\":1}"}`, "primary_passphrase: " + hidden,
		"aws_secret_access_key = " + hidden, "secretKey: " + hidden, "AccountKey=" + hidden + "==;x",
		"api-key: y token: " + hidden,
		"ALTER ROLE app PASSWORD '" + hidden + "'", "alter role app password e'a\\'" + hidden + "' valid until 'x'",
		"CREATE USER x PASSWORD\n'" + hidden + " ''x'' " + hidden, "ALTER ROLE a PASSWORD $$" + hidden + "$$",
		"ALTER ROLE a ENCRYPTED PASSWORD $x$" + hidden, "Authorization: Bearer " + hidden + ".x",
		"authorization: Basic " + hidden,
		"-----BEGIN EC PRIVATE KEY-----\n" + hidden + "\n-----END EC PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\n" + hidden,
		"SCRAM-SHA-256$4096:" + hidden + "$" + hidden + ":" + hidden, "eyJ" + hidden + "." + hidden + "." + hidden,
		"?password=" + hidden + "&x=1", "'password' => '" + hidden + "'",
	} {
		if got := redactText(text); strings.Contains(got, hidden) || !strings.Contains(got, redacted) {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestWhatIsNoSecretStays(t *testing.T) {
	for _, text := range []string{
		"2026-11-25 02:00:00.000 UTC [7] db=app,user=app,app=psql,client=local LOG:  checkpoint complete: wrote 3",
		"FATAL:  password authentication failed for user \"app\"", "https://shop.example.com:8443/path?x=a@b",
		"the Secret shop-app has another password",
		`{"time":"2026-11-25T02:00:00Z","level":"INFO","msg":"elected","term":7}`,
		"scram-sha-256", "primary_conninfo = 'host=x port=5432 user=toban_replication'",
	} {
		if got := redactText(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestNoConstantIsLeftInAStatement(t *testing.T) {
	for statement, want := range map[string]string{
		"SELECT * FROM a WHERE b = 'x' AND c = 7":  "SELECT * FROM a WHERE b = '…' AND c = 7",
		"INSERT INTO a VALUES ('it''s', $$x$$, 'b": "INSERT INTO a VALUES ('…', '…', '…'",
		"SELECT $1, $2": "SELECT $1, $2",
	} {
		if got := redactStatement(statement); got != want {
			t.Errorf("%q became %q", statement, got)
		}
	}
}

func TestNoSecretIsLeftInAnObject(t *testing.T) {
	object := map[string]any{}
	if err := json.Unmarshal([]byte(`{
		"metadata": {"name": "shop", "managedFields": [{"x": "h1dden"}], "labels": {"toban.dev/sampledb": "shop"},
			"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"a\":\"h1dden\"}", "mine": "h1dden",
				"toban.dev/switchover": "any", "toban.dev/manifest": "{\"password\":\"h1dden\"}"}},
		"spec": {"containers": [{"env": [{"name": "A", "value": "h1dden"}, 
			{"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
			"args": ["--uri=postgresql://a:h1dden@b/c"]}], "credentials": {"secretName": "s3", "accessKey": "h1dden"},
			"password": "h1dden", "n": 3},
		"data": {"backup.json": "{\"sampledb\": {\"metadata\": {\"annotations\": {\"x\": \"h1dden\"}}}}"},
		"status": {"manifest": {"metadata": {"annotations": {"x": "h1dden"}}}}}`), &object); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(redactObject(object))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), hidden) {
		t.Errorf("it is left in %s", text)
	}
	for _, want := range []string{
		`"name":"shop"`, `"toban.dev/switchover":"any"`, `"name":"A"`, `"fieldPath":"x"`, `"n":3`, `"secretName":"s3"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is lost of %s", want, text)
		}
	}
}
