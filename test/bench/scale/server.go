package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"toban.dev/test/played"
)

const (
	operatorNamespace = "toban-system"
	operatorUser      = "system:serviceaccount:" + operatorNamespace + ":toban-operator"
	// slowStart is for a busy machine: the API server's own default is twenty seconds.
	slowStart = 3 * time.Minute
)

// auditPolicy has the API server write down each request of the operator, when it has answered it, and nobody else's.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - {level: Metadata, users: ["` + operatorUser + `"]}
  - {level: None}
`

// server is a kube-apiserver with an etcd of its own.
type server struct {
	environment *envtest.Environment
	// config is an administrator's; kubeconfig is the operator's, with no more rights than config/rbac gives it.
	config     *rest.Config
	kubeconfig string
	// audit is where the operator's requests are.
	audit string
}

// startServer starts one that keeps its files in a folder.
func startServer(ctx context.Context, folder string) (*server, error) {
	s := &server{kubeconfig: filepath.Join(folder, "kubeconfig"), audit: filepath.Join(folder, "audit.log")}
	own, operators := rand.Text(), rand.Text()
	tokens, policy := filepath.Join(folder, "tokens"), filepath.Join(folder, "policy.yaml")
	groups := "system:serviceaccounts,system:serviceaccounts:" + operatorNamespace
	lines := fmt.Sprintf("%s,bench,bench,system:masters\n%s,%s,operator,\"%s\"\n", own, operators, operatorUser, groups)
	if err := errors.Join(os.WriteFile(tokens, []byte(lines), 0o600),
		os.WriteFile(policy, []byte(auditPolicy), 0o600)); err != nil {
		return nil, err
	}
	s.environment = &envtest.Environment{
		CRDDirectoryPaths:        []string{filepath.Join("config", "crd")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: slowStart,
		ControlPlaneStopTimeout:  slowStart,
	}
	s.environment.ControlPlane.GetAPIServer().Configure().
		Set("token-auth-file", tokens).
		Set("audit-policy-file", policy).Set("audit-log-path", s.audit).
		Set("service-cluster-ip-range", "10.64.0.0/12") // thousands of Services need thousands of addresses
	config, err := s.environment.Start()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the API server: %w", err), s.environment.Stop())
	}
	s.config = rest.AnonymousClientConfig(config)
	s.config.BearerToken, s.config.QPS = own, -1
	if err := s.prepare(ctx, operators); err != nil {
		return nil, errors.Join(err, s.environment.Stop())
	}
	return s, nil
}

// prepare gives the operator its rights and its kubeconfig.
func (s *server) prepare(ctx context.Context, token string) error {
	api, err := client.New(s.config, client.Options{})
	if err != nil {
		return err
	}
	if err := played.Install(ctx, api, "config"); err != nil {
		return fmt.Errorf("give the operator its rights: %w", err)
	}
	authority := filepath.Join(filepath.Dir(s.kubeconfig), "ca.crt")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {token: %q}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`, s.config.Host, authority, token)
	return errors.Join(os.WriteFile(authority, s.config.CAData, 0o600),
		os.WriteFile(s.kubeconfig, []byte(text), 0o600))
}
