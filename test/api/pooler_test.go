package api

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
)

// pooler wants one, of two Pods.
func pooler(db *v1.SampleDB) {
	db.Spec.Pooler = &v1.PoolerSpec{Instances: 2, Mode: v1.PoolTransaction, MaxClients: 1000}
}

func noPooler(db *v1.SampleDB) { db.Spec.Pooler = nil }

// settlePooler plays the cluster until nothing moves any more: the Pods of the Deployment are ready at once.
func (w *world) settlePooler(db *v1.SampleDB) *v1.SampleDB {
	w.Helper()
	for range 6 {
		for _, name := range []string{naming.Pool(db.Name), naming.ReadPool(db.Name)} {
			d := &appsv1.Deployment{}
			if !w.find(name, d) {
				continue
			}
			d.Status.ObservedGeneration, d.Status.Replicas = d.Generation, *d.Spec.Replicas
			d.Status.UpdatedReplicas, d.Status.ReadyReplicas = *d.Spec.Replicas, *d.Spec.Replicas
			w.must(w.api.Status().Update(w.Context(), d))
		}
		w.collectSecrets()
		w.now = w.now.Add(15 * time.Second)
		db = w.reconcile(db)
	}
	return db
}

// poolerShows is the issuer of the certificate in NAME-pool, which must be a pooler's and valid for its Service.
func (w *world) poolerShows(db *v1.SampleDB) *pki.Authority {
	w.Helper()
	secret := &corev1.Secret{}
	w.read(naming.Pool(db.Name), secret)
	leaf := pki.Certificates(secret.Data[naming.KeyTLSCertificate])[0]
	host := naming.ServiceHost(naming.Pool(db.Name), db.Namespace)
	if leaf.Subject.CommonName != naming.IdentityPooler || leaf.VerifyHostname(host) != nil || leaf.IsCA {
		w.Errorf("the poolers' certificate is of %s, for %v", leaf.Subject.CommonName, leaf.DNSNames)
	}
	for epoch := range int64(3) {
		authority, err := w.reconciler.Credentials.Authority(db, epoch)
		w.must(err)
		if leaf.CheckSignatureFrom(pki.Certificates(authority.CertPEM())[0]) == nil {
			return authority
		}
	}
	w.Fatalf("nobody has signed the poolers' certificate")
	return nil
}

// A pooler comes with all that it needs, writes nothing at rest, and goes with all but its ConfigMap.
func TestAPoolerComesAndGoes(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	db = w.settlePooler(w.edit(db, pooler))
	w.expect(db, v1.ConditionPoolerReady, metav1.ConditionTrue, v1.ReasonPoolerServes)
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	if !w.lastConfig().Pooler {
		t.Error("the agents are not told that poolers may log in")
	}
	app := &corev1.Secret{}
	w.read(naming.AppSecret("x"), app)
	if uri := string(app.Data[naming.KeyPoolURI]); !strings.Contains(uri, "@x-pool."+w.namespace+".svc:5432/app?") {
		t.Errorf("NAME-app has the pooler's connection string %q", uri)
	}
	if got := w.poolerShows(db); got.ID() != w.issues(db) {
		t.Error("the poolers show a certificate of another authority")
	}
	w.writes.take()
	db = w.reconcile(db)
	if writes := w.writes.take(); len(writes) > 0 {
		t.Errorf("at rest it writes: %v", writes)
	}

	if len(w.agents.restarts)+len(w.agents.switchovers) > 0 {
		t.Errorf("servers restart for it: %v, or hand over: %v", w.agents.restarts, w.agents.switchovers)
	}

	db = w.edit(db, noPooler) // its Secrets are still there
	again, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(db)})
	w.must(err)
	if again.RequeueAfter > 5*time.Second {
		t.Errorf("NAME-app waits for the former one to go, and is looked at again after %s", again.RequeueAfter)
	}
	db = w.settlePooler(db)
	if w.lastConfig().Pooler || db.Status.Pooler != nil {
		t.Errorf("it is still there: %+v", db.Status.Pooler)
	}
	for _, c := range db.Status.Conditions {
		if c.Type == v1.ConditionPoolerReady {
			t.Errorf("the condition is still there: %+v", c)
		}
	}
	for what, gone := range map[string]bool{
		"Deployment": !w.find("x-pool", &appsv1.Deployment{}), "Service": !w.find("x-pool", &corev1.Service{}),
		"budget": !w.find("x-pool", &policyv1.PodDisruptionBudget{}), "Secret": !w.find("x-pool", &corev1.Secret{}),
		"policy": !w.find("x-pool", &networkingv1.NetworkPolicy{}),
	} {
		if !gone {
			t.Errorf("its %s is still there", what)
		}
	}
	w.read(naming.AppSecret("x"), app)
	if _, there := app.Data[naming.KeyPoolURI]; there {
		t.Error("NAME-app still has the pooler's connection string")
	}
	w.writes.take()
	w.reconcile(db)
	if writes := w.writes.take(); len(writes) > 0 {
		t.Errorf("at rest it writes: %v", writes)
	}
}

// The poolers' certificate is rotated with the authority, when the instances trust both.
func TestThePoolersCertificateIsRotated(t *testing.T) {
	w := newWorld(t)
	db := w.settlePooler(w.edit(w.started("x", instances(3)), pooler))
	ids := w.authorities(db, 0, 1)
	db = w.settlePooler(w.edit(db, func(db *v1.SampleDB) { db.Spec.TLS.Names = []v1.ServerName{"db.example.com"} }))
	secret := &corev1.Secret{}
	w.read("x-pool", secret)
	leaf := pki.Certificates(secret.Data[naming.KeyTLSCertificate])[0]
	if err := leaf.VerifyHostname("db.example.com"); err != nil {
		t.Errorf("a name of the user's own: %v", err)
	}
	db = w.settlePooler(w.rotateAuthority(db, "1h"))
	if got := w.poolerShows(db).ID(); got != ids[0] {
		t.Errorf("while nobody shows the new authority, the poolers show %s", got)
	}
	w.now = w.now.Add(time.Hour)
	db = w.authorityUntil(db, v1.ReasonReissuing)
	db = w.settlePooler(db)
	if got := w.poolerShows(db).ID(); got != ids[1] {
		t.Errorf("the poolers show the former authority %s", got)
	}
}

// Where somebody else has a name, that is said of the pooler, and of nothing else.
func TestAPoolersNameIsTaken(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	w.must(w.api.Create(w.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "x-pool"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
	}))
	db = w.settlePooler(w.edit(db, pooler))
	if message := w.expect(db, v1.ConditionPoolerReady, metav1.ConditionFalse, v1.ReasonNameTaken); !strings.Contains(
		message, "x-pool") {
		t.Errorf("it says %q", message)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

// A pool for clients that only read comes and goes beside the other one, and knows where the readers are.
func TestAPoolForReadingComesAndGoes(t *testing.T) {
	w := newWorld(t)
	db := w.settleReaders(w.started("x", instances(3), pooler, readers(1)))
	db = w.settlePooler(db)
	was := &appsv1.Deployment{}
	w.read("x-pool", was)
	db = w.settlePooler(w.edit(db, func(db *v1.SampleDB) {
		db.Spec.Pooler.ReadOnly = &v1.ReadPoolSpec{Instances: 3}
	}))
	m := w.expect(db, v1.ConditionPoolerReady, metav1.ConditionTrue, v1.ReasonPoolerServes)
	if m != "2 of 2 Pods take clients, 3 of 3 take those that only read" || db.Status.Pooler.ReadOnlyReady != 3 {
		t.Errorf("it says %q", m)
	}
	told, reader := &corev1.ConfigMap{}, &corev1.Pod{}
	w.read("x-pool-ro", told)
	w.read("x-readers-0", reader)
	if text := told.Data[naming.KeyPool]; !strings.Contains(text, `"reads": true`) ||
		!strings.Contains(text, `"`+reader.Status.PodIP+`"`) {
		t.Errorf("its poolers are told %s, and a reader is at %s", text, reader.Status.PodIP)
	}
	w.readPoolIsKnown()
	is := &appsv1.Deployment{}
	if w.read("x-pool", is); is.Generation != was.Generation {
		t.Error("the other pool's Deployment has changed")
	}
	w.writes.take()
	if w.reconcile(db); len(w.writes.take()) > 0 {
		t.Error("at rest it writes")
	}

	db = w.settlePooler(w.edit(db, func(db *v1.SampleDB) { db.Spec.Pooler.ReadOnly = nil }))
	w.expect(db, v1.ConditionPoolerReady, metav1.ConditionTrue, v1.ReasonPoolerServes)
	for _, object := range []client.Object{
		&appsv1.Deployment{}, &corev1.Service{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{},
	} {
		if w.find("x-pool-ro", object) {
			t.Errorf("%T of the pool for reading is still there", object)
		}
	}
	app := &corev1.Secret{}
	w.read(naming.AppSecret("x"), app)
	if app.Data[naming.KeyReadPoolURI] != nil || app.Data[naming.KeyPoolURI] == nil || db.Status.Pooler.AppReadOnly {
		t.Error("NAME-app still has its connection string, or lacks the other one")
	}
}

// readPoolIsKnown checks that NAME-app and the poolers' certificate have the name of the pool for reading.
func (w *world) readPoolIsKnown() {
	w.Helper()
	app, secret := &corev1.Secret{}, &corev1.Secret{}
	w.read(naming.AppSecret("x"), app)
	if uri := string(app.Data[naming.KeyReadPoolURI]); !strings.Contains(uri, "@x-pool-ro."+w.namespace+".svc:5432/") {
		w.Errorf("NAME-app has the connection string %q", uri)
	}
	w.read("x-pool", secret)
	leaf := pki.Certificates(secret.Data[naming.KeyTLSCertificate])[0]
	for _, name := range []string{naming.Pool("x"), naming.ReadPool("x")} {
		if err := leaf.VerifyHostname(naming.ServiceHost(name, w.namespace)); err != nil {
			w.Error(err)
		}
	}
}

// What an autoscaler of poolers asks for stays, within the limits of the spec; without one the spec's number counts.
func TestAnAutoscalerOfPoolersIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	db := w.settlePooler(w.edit(w.started("x", instances(1)), func(db *v1.SampleDB) {
		pooler(db)
		db.Spec.Pooler.Autoscale = &v1.PoolerAutoscale{Max: 5, CPU: 70}
		db.Spec.Pooler.Service.Type = corev1.ServiceTypeNodePort
	}))
	scaler := &autoscalingv2.HorizontalPodAutoscaler{}
	w.read("x-pool", scaler)
	if s := scaler.Spec; s.ScaleTargetRef.Kind != "Deployment" || *s.MinReplicas != 2 || s.MaxReplicas != 5 {
		t.Errorf("the autoscaler is %s", jsonOf(t, s))
	}
	d := &appsv1.Deployment{}
	w.read("x-pool", d)
	w.must(w.api.SubResource("scale").Update(t.Context(), d, client.WithSubResourceBody(
		&autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 4}})))
	db = w.settlePooler(db)
	if w.read("x-pool", d); *d.Spec.Replicas != 4 || db.Status.Pooler.Ready != 4 {
		t.Errorf("there are %d, and the status says %d", *d.Spec.Replicas, db.Status.Pooler.Ready)
	}
	w.writes.take()
	db = w.reconcile(db)
	if writes := w.writes.take(); len(writes) > 0 {
		t.Errorf("at rest it writes: %v", writes)
	}
	service := &corev1.Service{}
	if w.read("x-pool", service); service.Spec.Type != corev1.ServiceTypeNodePort {
		t.Errorf("the Service is a %s", service.Spec.Type)
	}
	w.settlePooler(w.edit(db, pooler))
	if w.read("x-pool", d); *d.Spec.Replicas != 2 || w.find("x-pool", &autoscalingv2.HorizontalPodAutoscaler{}) {
		t.Errorf("without it there are %d", *d.Spec.Replicas)
	}
}

// While the database is stopped, there are no poolers.
func TestAPoolerStopsWithItsDatabase(t *testing.T) {
	w := newWorld(t)
	db := w.settlePooler(w.edit(w.started("x", instances(1)), pooler))
	db = w.settlePooler(w.edit(db, stopped))
	d := &appsv1.Deployment{}
	w.read("x-pool", d)
	if *d.Spec.Replicas != 0 {
		t.Errorf("%d poolers are wanted", *d.Spec.Replicas)
	}
	w.expect(db, v1.ConditionPoolerReady, metav1.ConditionFalse, v1.ReasonStopped)
}
