package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// ticks is how often a second the kernel counts the time of a processor (USER_HZ, which is the same everywhere).
const ticks = 100

// operator is the program toban as its Deployment runs it: a process of its own.
type operator struct {
	*exec.Cmd
	log     *os.File
	metrics string
	token   string
}

// startOperator starts it. Its log is kept in a file.
func startOperator(s *server, program, log string) (*operator, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	o := &operator{metrics: "https://" + port + "/metrics", token: s.config.BearerToken}
	if o.log, err = os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	o.Cmd = exec.Command(program, "operator", "--namespace="+operatorNamespace, "--image=toban:bench",
		"--probe-address=0", "--metrics-address="+port)
	installed, err := installedAs()
	if err != nil {
		return nil, errors.Join(err, o.log.Close())
	}
	o.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "GOMEMLIMIT="+installed.memory)
	o.Stdout, o.Stderr = o.log, o.log
	if err := o.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the operator: %w", err), o.log.Close())
	}
	return o, nil
}

// settings are those of the operator's container.
type settings struct {
	// memory is what Go keeps to, of the limit.
	memory string
	limit  resource.Quantity
}

// deployment is where the operator's is, from the repository's folder.
const deployment = "config/manager/deployment.yaml"

// installedAs reads them from its Deployment.
func installedAs() (settings, error) {
	text, err := os.ReadFile(deployment)
	if err != nil {
		return settings{}, err
	}
	return settingsOf(text)
}

func settingsOf(manifests []byte) (settings, error) {
	first, _, _ := bytes.Cut(manifests, []byte("\n---\n"))
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(first, &d); err != nil {
		return settings{}, fmt.Errorf("read %s: %w", deployment, err)
	}
	c := d.Spec.Template.Spec.Containers[0]
	out := settings{limit: *c.Resources.Limits.Memory()}
	for _, v := range c.Env {
		if v.Name == "GOMEMLIMIT" {
			out.memory = v.Value
		}
	}
	return out, nil
}

// freePort is an address of this machine at which nobody listens.
func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// stop ends it in order.
func (o *operator) stop() error {
	late := time.AfterFunc(time.Minute, func() { _ = o.Process.Kill() })
	defer late.Stop()
	return errors.Join(o.Process.Signal(syscall.SIGTERM), o.Wait(), o.log.Close())
}

// idle says that the operator has looked at this many SampleDBs at least since it was started, and has nothing to do.
func (o *operator) idle(ctx context.Context, least int) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.metrics, nil)
	if err != nil {
		return false, err
	}
	request.Header.Set("Authorization", "Bearer "+o.token)
	web := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := web.Do(request)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return false, nil // it has not come that far
	}
	if err != nil {
		return false, fmt.Errorf("read the operator's metrics: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return false, nil
	}
	now, err := readMetrics(response.Body)
	return err == nil && now.looked >= float64(least) && now.waiting == 0 && now.working == 0, err
}

// load is what the operator has done and has to do, about SampleDBs.
type load struct{ looked, waiting, working float64 }

// readMetrics reads it from its metrics.
func readMetrics(text io.Reader) (load, error) {
	var out load
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), "} ")
		if !ok || strings.HasPrefix(name, "#") || !strings.Contains(name, `controller="sampledb"`) {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return out, fmt.Errorf("understand the metric %s: %w", name, err)
		}
		switch name, _, _ := strings.Cut(name, "{"); name {
		case "controller_runtime_reconcile_total":
			out.looked += number
		case "workqueue_depth":
			out.waiting += number
		case "controller_runtime_active_workers":
			out.working += number
		}
	}
	return out, lines.Err()
}

// usage is what a process has used.
type usage struct {
	// memory it holds now, of which own is not its program's file, and the most that it ever held (bytes).
	memory, own, most int64
	cpu               time.Duration
}

func (o *operator) usage() (usage, error) {
	folder := fmt.Sprintf("/proc/%d/", o.Process.Pid)
	status, err := os.ReadFile(folder + "status")
	if err != nil {
		return usage{}, err
	}
	stat, err := os.ReadFile(folder + "stat")
	if err != nil {
		return usage{}, err
	}
	cpu, err := cpuOf(string(stat))
	return usage{
		memory: kilobytes(string(status), "VmRSS"), own: kilobytes(string(status), "RssAnon"),
		most: kilobytes(string(status), "VmHWM"), cpu: cpu,
	}, err
}

// kilobytes is a line of /proc/PID/status, in bytes.
func kilobytes(status, name string) int64 {
	for line := range strings.SplitSeq(status, "\n") {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64) // 0 where it is none
			return n << 10
		}
	}
	return 0
}

// cpuOf is the time in /proc/PID/stat: fields 14 and 15, of which the second has the program's name in brackets.
func cpuOf(stat string) (time.Duration, error) {
	const user, system = 14 - 3, 15 - 3
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) <= system {
		return 0, fmt.Errorf("understand /proc/PID/stat: %q", stat)
	}
	var sum int64
	for _, field := range []int{user, system} {
		n, err := strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("understand /proc/PID/stat: %w", err)
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks, nil
}
