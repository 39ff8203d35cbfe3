package api

import "strings"

// fields are values of an object's fields. One that is nil is not there.
type fields = map[string]any

// examples are good values of fields for which those made of the schema are none, by the end of their path. The guard
// of config/examples allows the Secrets and images in them.
var examples = map[string]any{
	"storage.size":            "1Gi",
	"wal.size":                "1Gi",
	"spec.storage.grow":       fields{"limit": "2Gi"},
	"grow.limit":              "2Gi",
	"volume.size":             "1Gi",
	"verification.size":       "1Gi",
	"backup.secondStore":      fields{"s3": fields{"bucket": "copies", "credentials": fields{"name": "databases-x"}}},
	"scrub.budget":            "1Gi",
	"scrub.days":              30,
	"incremental.fullEvery":   7,
	"spec.version":            17,
	"spec.image":              "registry.example.com/x:17",
	"spec.password":           "databases-x",
	"roles[].password":        "databases-x",
	"credentials.name":        "databases-x",
	"spec.migration":          fields{"command": []string{"x"}},
	"ingress.path":            "/",
	"roles[].name":            "other",
	"spec.restoreFrom":        fields{"backup": "b"},
	"restoreFrom.target":      fields{"name": "n"},
	"spec.restore":            fields{"id": "i", "confirm": "y", "backup": "b"},
	"restore.confirm":         "y",
	"restore.target":          fields{"name": "n"},
	"spec.target":             fields{"name": "n"},
	"target.branch":           1,
	"spec.readers":            fields{"count": 2},
	"readers.autoscale":       fields{"max": 2},
	"pooler.autoscale":        fields{"max": 3},
	"autoscale.max":           3,
	"autoscale.cpu":           70,
	"postgresql.hba[]":        "hostssl all all all reject",
	"postgresql.parameters":   fields{"work_mem": "4MB"},
	"postgresql.parameters{}": "4MB",
	"init.sql[]":              fields{"secret": fields{"name": "databases-s", "key": "k"}},
	"network.from[]":          fields{"podSelector": fields{}},
	"metrics.from[]":          fields{"podSelector": fields{}},
	"queries[].name":          "orders",
	"queries[].labels[]":      "state",
	"ipBlock.cidr":            "10.0.0.0/8",
	"ipBlock.except[]":        "10.9.0.0/16",
	"tls.names[]":             "db.example.com",
	"tls.secretName":          "databases-tls",
	"spec.update":             fields{"mode": "OnRequest"},
	"update.mode":             "OnRequest",
	"update.timeZone":         "Asia/Tokyo",
	"window.start":            "03:00",
	"window.timeZone":         "Asia/Tokyo",
	"update.window":           fields{"start": "03:00", "duration": "1h"},
	"spec.primary":            fields{"avoid": []int{2}},
	"primary.zones[]":         "zone-a",
	"primary.avoid[]":         2,
	"spec.sleepAfter":         "30m",
	"spec.stopWindows":        []any{fields{"start": "20:00", "duration": "11h"}},
	"spec.stopWindows[]":      fields{"start": "20:00", "duration": "11h"},
	"stopWindows[].start":     "03:00",
	"stopWindows[].duration":  "1h",
	"stopWindows[].timeZone":  "Asia/Tokyo",
	"spec.duration":           "10s",
	"spec.meanwhile":          []any{fields{"fault": "APIAway", "instance": "Standby"}},
	"spec.meanwhile[]":        fields{"fault": "APIAway", "instance": "Standby"},
	"meanwhile[].fault":       "APIAway",
	"spec.observe":            "2m",
	"spec.abortAfter":         "2m",
	"objectives.maxOutage":    "5s",

	"securityContext.privileged": false,
}

// needed are fields of a spec of a kind that a rule asks for.
var needed = map[string]fields{
	"DatabaseRestore": {"backup": "b"},
	"SampleDB":        {"resources": fields{"requests": fields{"cpu": 1}}},
}

// companions are what must be beside a field, or must not.
var companions = map[string]fields{
	"spec.autoscaling":       {"resources": fields{"requests": fields{"cpu": 1}}},
	"readers.autoscale":      {"count": nil},
	"autoscale.min":          {"max": 2},
	"spec.migration":         {"database": fields{"name": "d"}},
	"secondStore.gcs":        {"s3": nil},
	"secondStore.azure":      {"s3": nil},
	"backup.timeZone":        {"schedule": "@daily"},
	"spec.deletionPolicy":    {"backup": fields{}},
	"spec.restore":           {"backup": fields{}},
	"restoreFrom.archive":    {"backup": nil},
	"restore.latest":         {"backup": nil},
	"restore.survivor":       {"backup": nil},
	"spec.sleepAfter":        {"pooler": fields{}},
	"spec.zone":              {"instance": "Zone"},
	"restoreFrom.sampleDB":   {"backup": nil},
	"update.mode":            {"mode": "OnRequest"},
	"primary.handOver":       {"avoid": []int{2}},
	"stopWindows[].days":     {"start": "03:00", "duration": "1h"},
	"stopWindows[].days[]":   {"start": "03:00", "duration": "1h"},
	"stopWindows[].timeZone": {"start": "03:00", "duration": "1h"},
	"stopWindows[].start":    {"duration": "1h"},
	"stopWindows[].duration": {"start": "03:00"},
	"target.lsn":             {"name": nil},
	"target.time":            {"name": nil},
	"target.transaction":     {"name": nil},
	"target.exclusive":       {"name": nil, "lsn": "0/1"},
	"sql[].configMap":        {"secret": nil},
	"from[].ipBlock":         {"podSelector": nil},
}

// suffix is the end of a path by which a field is known here.
func suffix(path string) string {
	parts := strings.Split(path, ".")
	return strings.Join(parts[max(0, len(parts)-2):], ".")
}
