package api

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// onlyShop lets the team shop and one range of addresses in.
func onlyShop(db *v1.SampleDB) {
	db.Spec.Network.From = []v1.NetworkPeer{
		{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}},
		{IPBlock: &v1.IPBlock{CIDR: "10.0.0.0/8", Except: []v1.CIDR{"10.9.0.0/16"}}},
	}
}

// reaches is whom a policy lets reach PostgreSQL's port, and whether that is everybody.
func reaches(policy *networkingv1.NetworkPolicy) (peers []networkingv1.NetworkPolicyPeer, everybody bool) {
	for _, rule := range policy.Spec.Ingress {
		if slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
			return p.Port.IntValue() == naming.PortPostgreSQL
		}) {
			peers = append(peers, rule.From...)
			everybody = everybody || len(rule.From) == 0
		}
	}
	return peers, everybody
}

func TestWhoMayReachPostgreSQLIsAsTheSpecSays(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	policy := &networkingv1.NetworkPolicy{}
	w.read("x", policy)
	if _, everybody := reaches(policy); !everybody {
		t.Errorf("without network.from not everybody gets in: %s", jsonOf(t, policy.Spec))
	}
	db = w.edit(db, onlyShop)
	db = w.reconcile(db)
	policy = &networkingv1.NetworkPolicy{}
	w.read("x", policy)
	peers, everybody := reaches(policy)
	if everybody || len(peers) != 3 || peers[0].PodSelector.MatchLabels[naming.LabelSampleDB] != "x" ||
		peers[1].NamespaceSelector.MatchLabels["team"] != "shop" || peers[2].IPBlock.Except[0] != "10.9.0.0/16" {
		t.Errorf("the policy lets in %s", jsonOf(t, policy.Spec))
	}
	w.writes.take()
	w.reconcile(db)
	if writes := w.writes.take(); len(writes) > 0 {
		t.Errorf("at rest it writes: %v", writes)
	}
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.Network.From = nil })
	w.reconcile(db)
	policy = &networkingv1.NetworkPolicy{}
	w.read("x", policy)
	if _, everybody := reaches(policy); !everybody {
		t.Error("what was taken out of the spec is still in the policy")
	}
}

func TestBadNetworksAreRefusedWithTheirSentence(t *testing.T) {
	w := newWorld(t)
	block := func(cidr v1.CIDR, except ...v1.CIDR) v1.NetworkPeer {
		return v1.NetworkPeer{IPBlock: &v1.IPBlock{CIDR: cidr, Except: except}}
	}
	const either = "each item of from must have either ipBlock, or podSelector, namespaceSelector or both"
	for name, c := range map[string]struct {
		peer v1.NetworkPeer
		want string
	}{
		"nobody": {v1.NetworkPeer{}, either},
		"Pods and addresses": {
			v1.NetworkPeer{PodSelector: &metav1.LabelSelector{}, IPBlock: &v1.IPBlock{CIDR: "10.0.0.0/8"}}, either,
		},
		"an address without a range": {block("10.0.0.1"), "must be written as 10.0.0.0/8"},
		"what is left out is text":   {block("10.0.0.0/8", "x"), "must be written as 10.0.0.0/8"},
		"what is left out is outside": {
			block("10.0.0.0/8", "192.168.0.0/16"), "except must be a smaller range inside of cidr",
		},
		"all is left out": {block("10.0.0.0/8", "10.0.0.0/8"), "except must be a smaller range inside of cidr"},
	} {
		t.Run(name, func(t *testing.T) {
			db := w.sampleDB("bad", func(db *v1.SampleDB) { db.Spec.Network.From = []v1.NetworkPeer{c.peer} })
			refused(t, w.api.Create(t.Context(), db), c.want)
		})
	}
}

// A MyApp reaches its database whatever that one's spec.network.from says, and no other one.
func TestAMyAppReachesItsDatabase(t *testing.T) {
	w := newAppWorld(t)
	app := w.made(func(app *appv1.MyApp) {
		app.Spec.Database = &appv1.DatabaseReference{Kind: appv1.DatabaseSampleDB, Name: "shop"}
	})
	name := naming.DatabasePolicy(app.Name)
	servers := func() []string {
		policy := &networkingv1.NetworkPolicy{}
		w.read(name, policy)
		peers, everybody := reaches(policy)
		if everybody || len(peers) != 1 || peers[0].PodSelector.MatchLabels[naming.LabelMyApp] != app.Name {
			t.Errorf("the policy lets in %s", jsonOf(t, policy.Spec))
		}
		leads := policy.Spec.PodSelector.MatchExpressions
		if leads[0].Key != naming.LabelComponent || !slices.Equal(leads[0].Values, []string{
			naming.ComponentInstance, naming.ComponentReader, naming.ComponentPooler, naming.ComponentReadPool,
		}) {
			t.Errorf("it leads to more than instances, readers and poolers: %s", jsonOf(t, policy.Spec))
		}
		return leads[1].Values
	}
	if got := servers(); !slices.Equal(got, []string{"shop"}) {
		t.Errorf("it reaches %v", got)
	}
	app = w.change(app, func(app *appv1.MyApp) {
		app.Spec.Database = &appv1.DatabaseReference{Kind: appv1.DatabasePostgreSQL, Name: "foodb"}
	})
	if got := servers(); !slices.Equal(got, []string{"shop"}) {
		t.Errorf("while it is not known on which server its database lies, it reaches %v", got)
	}
	pg := &pgv1.PostgreSQL{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "foodb"},
		Spec: pgv1.PostgreSQLSpec{
			DB: "foo", User: "foo", Password: "p", Server: &pgv1.ServerReference{Name: "big"},
		},
	}
	w.must(w.api.Create(t.Context(), pg))
	app = w.again(app)
	if got := servers(); !slices.Equal(got, []string{"big"}) {
		t.Errorf("it reaches %v", got)
	}
	w.change(app, func(app *appv1.MyApp) { app.Spec.Database = nil })
	if w.find(name, &networkingv1.NetworkPolicy{}) {
		t.Error("without a database there is still a policy")
	}
}
