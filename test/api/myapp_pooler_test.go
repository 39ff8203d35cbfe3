package api

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "toban.dev/api/myapp/v1"
	v1 "toban.dev/api/v1"
)

// An application that wants a pooler waits for it, is told what to do, and goes on by itself when it is there.
func TestAnApplicationWaitsForAPooler(t *testing.T) {
	w := newAppWorld(t)
	w.postgres("shop")
	app := w.made(func(app *appv1.MyApp) {
		app.Spec.Database = &appv1.DatabaseReference{Kind: appv1.DatabasePostgreSQL, Name: "shop", Pooler: true}
	})
	if message := w.ready(app, metav1.ConditionFalse, appv1.ReasonDatabaseNotReady); !strings.Contains(message,
		"SampleDB shop has no pooler") {
		t.Errorf("it says %q", message)
	}
	db := &v1.SampleDB{}
	w.read("shop", db)
	pooler(db)
	w.must(w.api.Update(t.Context(), db))
	app = w.again(app)
	w.playDeployment(app)
	w.ready(w.again(app), metav1.ConditionTrue, appv1.ReasonReady)
}
