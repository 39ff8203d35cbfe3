// Package servers runs stores for tests, on loopback and for the time of one test:
// an S3 server, and the emulators of Azure's and Google's. A test that needs one
// which can't be had here says so and is skipped.
package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"toban.dev/internal/archive/bucket"
	"toban.dev/test/releases"
)

const (
	// ready is how long a server may take to answer, on a busy machine.
	ready = 2 * time.Minute
	// bucketName is that of every bucket.
	bucketName = "archive"
	// s3Owner may do everything in the S3 server, with s3Secret.
	s3Owner, s3Secret = "tester", "a secret of the tests"
	// azurite is the version of Azure's emulator.
	azurite = "3.37.0"
	// The account of the emulator, which is public (Azure's documentation, "Use the Azurite emulator").
	azureAccount = "devstoreaccount1"
	azureKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Server is a store that runs.
type Server struct {
	// URL is http://127.0.0.1:PORT: a Faulty may be put before it.
	URL string
	// Config is a bucket of it that is there, with credentials for everything.
	Config bucket.Config
	// Folder is where the bucket's objects are as files, "" where they are not.
	Folder string
}

// At is the configuration for who goes to another URL, a proxy's.
func (s Server) At(url string) bucket.Config {
	config := s.Config
	switch {
	case config.S3 != nil:
		changed := *config.S3
		changed.Endpoint = url
		config.S3 = &changed
	case config.GCS != nil:
		changed := *config.GCS
		changed.Endpoint = url
		config.GCS = &changed
	case config.Azure != nil:
		changed := *config.Azure
		changed.Endpoint = url + "/" + azureAccount
		config.Azure = &changed
	}
	return config
}

// StartS3 starts an S3 server (versitygw) over a folder of the test, with a bucket.
func StartS3(t *testing.T) Server {
	t.Helper()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, bucketName), 0o700); err != nil {
		t.Fatal(err)
	}
	return startS3(t, folder, s3Secret)
}

// startS3 starts one over a folder with buckets that takes a secret key.
func startS3(t *testing.T, folder, secret string, options ...string) Server {
	t.Helper()
	const access, name = s3Owner, bucketName
	url := start(t, func(port int) *exec.Cmd {
		first := []string{"--port", address(port), "--access", access, "--secret", secret, "--quiet"}
		return exec.Command(tool(t, "versitygw"), slices.Concat(first, options, []string{"posix", folder})...)
	})
	return Server{URL: url, Folder: filepath.Join(folder, name), Config: bucket.Config{
		S3:          &bucket.S3{Endpoint: url, Region: "us-east-1", Bucket: name, PathStyle: true},
		Credentials: Secret(t, map[string]string{"accessKeyID": access, "secretAccessKey": secret}),
	}}
}

// StartAzure starts Azure's emulator, with a container.
func StartAzure(t *testing.T) Server {
	t.Helper()
	return startAzure(t, azureKey)
}

// startAzure starts one that takes an account key.
func startAzure(t *testing.T, key string) Server {
	t.Helper()
	program := azuriteProgram(t)
	url := start(t, func(port int) *exec.Cmd {
		c := exec.Command("node", program, "--blobHost", "127.0.0.1", "--blobPort", strconv.Itoa(port),
			"--location", t.TempDir(),
			"--silent", "--skipApiVersionCheck", "--disableProductStyleUrl", "--disableTelemetry")
		c.Env = append(os.Environ(), "AZURITE_ACCOUNTS="+azureAccount+":"+key)
		return c
	})
	const name = bucketName
	who, err := container.NewSharedKeyCredential(azureAccount, key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(url+"/"+azureAccount+"/"+name, who, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatalf("make a container: %v", err)
	}
	return Server{URL: url, Config: bucket.Config{
		Azure:       &bucket.Azure{Account: azureAccount, Container: name, Endpoint: url + "/" + azureAccount},
		Credentials: Secret(t, map[string]string{"accountKey": key}),
	}}
}

// StartGCS starts a server that imitates Google Cloud Storage (fake-gcs-server),
// with a bucket. It takes whoever comes: it is nothing to try credentials with.
func StartGCS(t *testing.T) Server {
	t.Helper()
	url := start(t, func(port int) *exec.Cmd {
		return exec.Command(tool(t, "fake-gcs-server"), "-scheme", "http",
			"-host", "127.0.0.1", "-port", strconv.Itoa(port),
			"-public-host", address(port), "-backend", "memory", "-log-level", "error", "-data", t.TempDir())
	})
	const name = bucketName
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/storage/v1/b?project=test",
		strings.NewReader(`{"name":"`+name+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("make a bucket: %v", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("make a bucket: %s", answer.Status)
	}
	return Server{URL: url, Config: bucket.Config{GCS: &bucket.GCS{Bucket: name, Endpoint: url}}}
}

// Secret makes a folder with files, as a Secret is mounted, and returns its path.
func Secret(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// start starts a program at a free port and waits until it answers. The port may
// be taken by another between the two: then another one is tried.
func start(t *testing.T, command func(port int) *exec.Cmd) string {
	t.Helper()
	const attempts = 3
	var err error
	for range attempts {
		port := freePort(t)
		if err = run(t, command(port), port); err == nil {
			return "http://" + address(port)
		}
	}
	t.Fatalf("start a server: %v", err)
	return ""
}

// run starts a program, waits until it answers, and ends it with the test.
func run(t *testing.T, command *exec.Cmd, port int) error {
	t.Helper()
	said := &output{}
	command.Stdout, command.Stderr = said, said
	command.WaitDelay = time.Second
	if err := command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", command.Path, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	ctx, cancel := context.WithTimeout(t.Context(), ready)
	defer cancel()
	for !answers(ctx, port) {
		select {
		case err := <-ended:
			return fmt.Errorf("%s has ended: %w: %s", command.Path, err, said)
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer (%w): %s", command.Path, stop(command, ended), said)
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Cleanup(func() {
		if err := stop(command, ended); t.Failed() {
			t.Logf("%s (%v) said: %s", command.Path, err, said)
		}
	})
	return nil
}

// stop ends a program, and says how it has ended.
func stop(command *exec.Cmd, ended <-chan error) error {
	_ = command.Process.Kill() // it has nothing to keep, or has ended already
	return <-ended
}

// answers says whether there is an HTTP server at a port, whatever it says.
func answers(ctx context.Context, port int) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address(port)+"/", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil
}

// output keeps the end of what a program says.
type output struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	const most = 64 << 10
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.text.Len() > most {
		o.text.Next(o.text.Len() - most/2)
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("the listener's address is %v", listener.Addr())
	}
	return address.Port
}

// tool builds a program of tools/, once.
func tool(t *testing.T, name string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(repository(t), "hack", "tool.sh"), name)
	command.Stderr = os.Stderr
	path, err := command.Output()
	if err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	return strings.TrimSpace(string(path))
}

func repository(t *testing.T) string {
	t.Helper()
	folder, err := releases.Repository()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// azuriteProgram is the path of Azure's emulator, which npm installs once per
// version into a folder of the cache.
func azuriteProgram(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("Azure's emulator needs %s", program)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "toban", "azurite-"+azurite)
	program := filepath.Join(folder, "node_modules", "azurite", "dist", "src", "blob", "main.js")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if err := installAzurite(ctx, folder); err != nil {
		t.Fatalf("install Azure's emulator: %v", err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("Azure's emulator is not where it should be: %v", err)
	}
	return program
}

// installAzurite installs it beside the folder and renames that: an installation
// that was cut off is none. Its packages' own scripts are not run.
func installAzurite(ctx context.Context, folder string) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(folder), "azurite-")
	if err != nil {
		return err
	}
	npm := exec.CommandContext(ctx, "npm", "install", "--prefix", temporary,
		"--no-audit", "--no-fund", "--ignore-scripts", "azurite@"+azurite)
	npm.WaitDelay = time.Second
	text, err := npm.CombinedOutput()
	if err == nil && os.Rename(temporary, folder) == nil {
		return nil
	}
	if remains := os.RemoveAll(temporary); err != nil || remains != nil {
		return fmt.Errorf("npm: %w: %s", errors.Join(err, remains), text)
	}
	return nil // another has been first
}
