package crowd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// hertz is in what the kernel counts the time of processes (proc(5), USER_HZ).
const hertz = 100

// Programs of which the usage is told apart.
const (
	Agents     = "agents"
	Servers    = "PostgreSQL"
	Operator   = "operator"
	APIServer  = "API server and etcd"
	Nodes      = "kubelets and containerd"
	Everything = "everything else"
)

// Usage is how much of a processor the programs of each kind took, and how many processes there are of it; the nodes of
// the local cluster are on this machine.
type Usage struct {
	Cores map[string]float64
	Count map[string]int
	// Forks is how many processes were made in a minute.
	Forks float64
}

// Each is what one of a kind took.
func (u Usage) Each(kind string) float64 { return u.Cores[kind] / float64(max(1, u.Count[kind])) }

// Measure measures for a time.
func Measure(ctx context.Context, lasts time.Duration) (Usage, error) {
	before, forks, err := snapshot()
	if err != nil {
		return Usage{}, err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return Usage{}, fmt.Errorf("measure: %w", ctx.Err())
	case <-time.After(lasts):
	}
	after, later, err := snapshot()
	if err != nil {
		return Usage{}, err
	}
	took := time.Since(began).Seconds()
	u := Usage{Cores: map[string]float64{}, Count: map[string]int{}, Forks: float64(later-forks) * 60 / took}
	for id, p := range after {
		u.Cores[p.kind] += float64(p.ticks-before[id].ticks) / hertz / took
		u.Count[p.kind]++
	}
	return u, nil
}

// process is one, with the time that it has taken.
type process struct {
	kind  string
	ticks int64
}

// snapshot are all processes, by id and start, and how many have ever been made.
func snapshot() (all map[string]process, forks int64, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, 0, fmt.Errorf("list the processes: %w", err)
	}
	all = map[string]process{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has gone
		}
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if id, p, ok := parseStat(string(text), strings.ReplaceAll(string(command), "\x00", " ")); ok {
			all[id] = p
		}
	}
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil, 0, fmt.Errorf("read how many processes were made: %w", err)
	}
	return all, parseForks(string(text)), nil
}

// parseStat reads "pid (name) state …", of which the fields 14, 15 and 22 are the time in the program, in the kernel,
// and the start (proc(5)).
func parseStat(text, command string) (id string, p process, ok bool) {
	head, rest, found := strings.Cut(text, " (")
	end := strings.LastIndex(rest, ") ")
	if !found || end < 0 {
		return "", p, false
	}
	fields := strings.Fields(rest[end+2:])
	if len(fields) < 20 {
		return "", p, false
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	p = process{kind: kindOf(rest[:end], command), ticks: user + system}
	return head + "@" + fields[19], p, err == nil && err2 == nil
}

// kindOf tells a process by its name and its command.
func kindOf(name, command string) string {
	switch {
	case name == "toban" && strings.Contains(command, " agent"):
		return Agents
	case name == "toban" && strings.Contains(command, " operator"):
		return Operator
	case name == "postgres":
		return Servers
	case name == "kube-apiserver" || name == "etcd":
		return APIServer
	case name == "kubelet" || strings.HasPrefix(name, "containerd"):
		return Nodes
	}
	return Everything
}

func parseForks(text string) int64 {
	for line := range strings.Lines(text) {
		if value, is := strings.CutPrefix(line, "processes "); is {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64) // digits
			return n
		}
	}
	return 0
}
