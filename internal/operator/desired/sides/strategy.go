package sides

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/bluegreen"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// StrategyFacts are the facts about a SampleDB that may keep it from an upgrade by a second side.
func StrategyFacts(db *v1.SampleDB) bluegreen.StrategyFacts {
	out := bluegreen.StrategyFacts{
		Name: db.Name, LongestName: naming.MaxNameBlueGreen, From: desired.Major(db),
		NoArchive: desired.Backup(db) == nil, Pooler: db.Spec.Pooler != nil, Readers: desired.MostReaders(db) > 0,
		Relay: db.Spec.Service.Route == v1.RouteRelay, OwnCertificate: db.Spec.TLS.SecretName != "",
	}
	if o := metav1.GetControllerOf(db); o != nil && o.Kind == "PostgreSQL" {
		out.PostgreSQL = o.Name
	}
	return out
}
