// Package api is the third ring of tests: the controllers against a real
// kube-apiserver with a real etcd, but without Kubernetes' own controllers and
// kubelets, whose part the tests play. Reconcile is called and not waited for.
// Only the agents are faked.
package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/go-logr/logr"

	appv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/test/played"
)

// operatorNamespace is where config/ installs the operator.
const operatorNamespace = "toban-system"

// server is the API server that all tests share; each has a namespace of its own.
var server *rest.Config

var scheme = runtime.NewScheme()

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if args := os.Getenv(operatorArgs); args != "" {
		return beOperator(strings.Fields(args))
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Fprintln(os.Stderr, "KUBEBUILDER_ASSETS must be the folder with kube-apiserver and etcd: "+
			"run these tests through `make test`, or set it to what `bin/localkube assets` prints")
		return 1
	}
	ctrl.SetLogger(logr.Discard())
	if err := collectSeldom(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, pgv1.AddToScheme, appv1.AddToScheme} {
		if err := add(scheme); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	environment, config, err := startServer()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if environment == nil {
		return 1
	}
	code := 1
	if err == nil {
		remember(config)
		server = config
		code = m.Run()
	}
	if err := environment.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the API server:", err)
		return 1
	}
	return code
}

// collectSeldom lets this program and the servers that it starts collect garbage seldom: that is a seventh of their
// work, and their heaps are small.
func collectSeldom() error {
	const percent = 400
	debug.SetGCPercent(percent)
	return os.Setenv("GOGC", strconv.Itoa(percent))
}

// startServer starts an API server with our kinds and the operator's rights. The environment is to be
// stopped where there is one.
func startServer() (*envtest.Environment, *rest.Config, error) {
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd")},
		ErrorIfCRDPathMissing: true,
		// On a busy machine its start and its end take longer than the defaults of twenty seconds.
		ControlPlaneStartTimeout: 3 * time.Minute,
		ControlPlaneStopTimeout:  3 * time.Minute,
	}
	tokens, token, err := tokenFile()
	if err != nil {
		return nil, nil, fmt.Errorf("make a token for the tests: %w", err)
	}
	defer func() { _ = os.Remove(tokens) }() // it is read once, at the start
	environment.ControlPlane.GetAPIServer().Configure().Set("token-auth-file", tokens).
		Set("enable-priority-and-fairness", "false") // here nobody takes turns, and each request would be weighed
	config, err := environment.Start()
	if err != nil {
		return nil, nil, fmt.Errorf("start the API server: %w", err)
	}
	config.CertData, config.KeyData, config.BearerToken = nil, nil, token
	config.QPS = -1
	if err := installRights(config); err != nil {
		return environment, nil, fmt.Errorf("give the operator its rights: %w", err)
	}
	return environment, config, nil
}

// tokenFile makes a file for kube-apiserver with the token of an administrator. A certificate would be verified at each
// request, which costs as much as to answer a small one.
func tokenFile() (path, token string, err error) {
	file, err := os.CreateTemp("", "toban-api-tokens-")
	if err != nil {
		return "", "", err
	}
	token = rand.Text()
	_, err = fmt.Fprintf(file, "%s,tests,tests,system:masters\n", token)
	return file.Name(), token, errors.Join(err, file.Close())
}

// mappers are what is known of the kinds of each API server, by its config.
var (
	mappers     = map[*rest.Config]meta.RESTMapper{}
	mappersLock sync.Mutex
)

// mapperOf is what is known of the kinds of an API server. It is asked once, and not for each client.
func mapperOf(server *rest.Config) (meta.RESTMapper, error) {
	mappersLock.Lock()
	defer mappersLock.Unlock()
	if known := mappers[server]; known != nil {
		return known, nil
	}
	web, err := rest.HTTPClientFor(server)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(server, web)
	if err != nil {
		return nil, err
	}
	mappers[server] = mapper
	return mapper, nil
}

// ownServer is an API server for one test, which does to it what the others would not survive.
func ownServer(t *testing.T) *rest.Config {
	t.Helper()
	runBeside(t) // before it starts: while the test waits for its turn, an API server would work for nothing
	environment, config, err := startServer()
	if environment != nil {
		t.Cleanup(func() {
			if err := environment.Stop(); err != nil {
				t.Errorf("stop the API server: %v", err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// installRights gives the operator's ServiceAccount what a user's cluster gives it.
func installRights(config *rest.Config) error {
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	return played.Install(context.Background(), api, filepath.Join("..", "..", "config"))
}
