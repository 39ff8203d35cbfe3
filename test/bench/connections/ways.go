package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

const (
	namespace = outside.Namespace("toban-bench-connections")
	name      = "bench"
	patience  = 5 * time.Minute
)

// manifest is the SampleDB, and a Service that leads to its primary as NAME does by default.
const manifest = `apiVersion: toban.dev/v1
kind: SampleDB
metadata: {name: bench}
spec:
  version: 17
  instances: 3
  storage: {size: 2Gi}
  backup: {none: true}
  service: {route: Relay}
  pooler: {instances: 1, connections: 40}
---
apiVersion: v1
kind: Service
metadata: {name: by-label}
spec:
  publishNotReadyAddresses: true
  selector: {toban.dev/sampledb: bench, toban.dev/role: primary}
  ports: [{port: 5432}]
`

// byHand is a PgBouncer as one sets it up by hand: in front of the present primary, on the node of the pooler, with a
// list of users, and TLS on both sides.
const byHand = `apiVersion: v1
kind: ConfigMap
metadata: {name: by-hand}
data:
  userlist.txt: |
    "%[5]s" "%[6]s"
  pgbouncer.ini: |
    [databases]
    * = host=%[3]s port=5432
    [pgbouncer]
    listen_addr = *
    listen_port = 5432
    unix_socket_dir =
    auth_type = scram-sha-256
    auth_file = /etc/by-hand/userlist.txt
    pool_mode = transaction
    max_client_conn = 1000
    default_pool_size = %[4]d
    max_prepared_statements = 200
    client_tls_sslmode = require
    client_tls_cert_file = /etc/certificate/tls.crt
    client_tls_key_file = /etc/certificate/tls.key
    client_tls_ca_file = /etc/certificate/tls.crt
    server_tls_sslmode = require
    log_connections = 0
    log_disconnections = 0
---
apiVersion: v1
kind: Pod
metadata: {name: by-hand, labels: {app: by-hand}}
spec:
  nodeName: %[2]s
  securityContext:
    {runAsUser: 998, runAsGroup: 998, fsGroup: 998, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: pgbouncer
    image: %[1]s
    imagePullPolicy: IfNotPresent
    command: [pgbouncer, /etc/by-hand/pgbouncer.ini]
    resources: {requests: {cpu: 50m, memory: 64Mi}}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    readinessProbe: {tcpSocket: {port: 5432}, periodSeconds: 1}
    volumeMounts:
    - {name: settings, mountPath: /etc/by-hand}
    - {name: certificate, mountPath: /etc/certificate}
  volumes:
  - {name: settings, configMap: {name: by-hand}}
  - {name: certificate, secret: {secretName: bench-pool, defaultMode: 0440}}
---
apiVersion: v1
kind: Service
metadata: {name: by-hand}
spec: {selector: {app: by-hand}, ports: [{port: 5432}]}
`

// way is one to the database.
type way struct {
	name, service, certified string
	access                   outside.Access
}

// begin makes the database and all ways to it. remove removes them.
func begin(ctx context.Context) (ways []way, remove func() error, err error) {
	remove = func() error {
		_, err := namespace.Kubectl(context.WithoutCancel(ctx), "delete", "namespace", string(namespace))
		return err
	}
	if _, err := namespace.Kubectl(ctx, "create", "namespace", string(namespace)); err != nil {
		return nil, func() error { return nil }, err
	}
	if err := namespace.Apply(ctx, manifest); err != nil {
		return nil, remove, err
	}
	if err := outside.Until(ctx, patience, whole); err != nil {
		return nil, remove, err
	}
	if err := setUpByHand(ctx); err != nil {
		return nil, remove, err
	}
	ways = []way{
		{name: "Service, to the primary", service: "by-label", certified: name},
		{name: "Service, passed on", service: name, certified: name},
		{name: "PgBouncer by hand", service: "by-hand", certified: naming.Pool(name)},
		{name: "pooler", service: naming.Pool(name), certified: naming.Pool(name)},
	}
	for i, w := range ways {
		if ways[i].access, err = namespace.Access(ctx, name, w.service); err != nil {
			return nil, remove, err
		}
		// The certificates have the names of the SampleDB's own Services.
		access := ways[i].access.At(ways[i].access.Host, naming.ServiceHost(w.certified, string(namespace)))
		err := outside.Until(ctx, patience, func(ctx context.Context) error { return access.Do(ctx, "SELECT 1") })
		if err != nil {
			return nil, remove, fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return ways, remove, nil
}

// whole says whether all but the PgBouncer by hand is there.
func whole(ctx context.Context) error {
	db, err := namespace.SampleDB(ctx, name)
	if err != nil {
		return err
	}
	var service corev1.Service
	if err := namespace.Get(ctx, "service/"+name, &service); err != nil {
		return err
	}
	if service.Spec.Selector[naming.LabelRelay] == "" {
		return errors.New("the Service does not lead to all instances yet")
	}
	return errors.Join(outside.Condition(db, v1.ConditionReady, "True", v1.ReasonReady),
		outside.Condition(db, v1.ConditionPoolerReady, "True", v1.ReasonPoolerServes))
}

// setUpByHand makes the PgBouncer by hand, with as many server connections as the pooler's.
func setUpByHand(ctx context.Context) error {
	db, err := namespace.SampleDB(ctx, name)
	if err != nil {
		return err
	}
	var primary, pooler corev1.Pod
	if err := namespace.Get(ctx, "pod/"+db.Status.Primary, &primary); err != nil {
		return err
	}
	at, err := namespace.Kubectl(ctx, "get", "pods", "-l", naming.LabelComponent+"="+naming.ComponentPooler,
		"-o", "jsonpath={.items[0].metadata.name}")
	if err == nil {
		err = namespace.Get(ctx, "pod/"+at, &pooler)
	}
	var deployment appsv1.Deployment
	if err == nil {
		err = namespace.Get(ctx, "deployment/"+naming.Pool(name), &deployment)
	}
	if err != nil {
		return err
	}
	access, err := namespace.Access(ctx, name, naming.ReadWriteService(name))
	if err != nil {
		return err
	}
	image := deployment.Spec.Template.Spec.Containers[0].Image
	return namespace.Apply(ctx, fmt.Sprintf(byHand, image, pooler.Spec.NodeName, primary.Status.PodIP,
		40, access.User, access.Password))
}
