package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

func killPostmaster(_ context.Context, s *scene) error {
	found, err := pick(s.primary.uid, "postmaster", process.postmaster)
	if err != nil {
		return err
	}
	s.strike()
	return send(found, syscall.SIGKILL)
}

func killAgent(_ context.Context, s *scene) error {
	found, err := pick(s.primary.uid, "agent", func(p process) bool { return p.agent })
	if err != nil {
		return err
	}
	s.strike()
	return send(found, syscall.SIGKILL)
}

// freeze stops processes of the primary's Pod, and lets those that are left go on
// when it is healed.
func freeze(what string, which func(process) bool) injection {
	return func(_ context.Context, s *scene) error {
		found, err := pick(s.primary.uid, what, which)
		if err != nil {
			return err
		}
		var frozen []process
		s.later("stopped processes go on", func(context.Context) error { return send(frozen, syscall.SIGCONT) })
		s.strike()
		// Again, for a child that came between the look and the signal.
		for range 3 {
			frozen = append(frozen, found...)
			if err := send(found, syscall.SIGSTOP); err != nil {
				return err
			}
			if found, err = pick(s.primary.uid, what, which); err != nil {
				return err
			}
		}
		return nil
	}
}

func deletePod(of func(*scene) instance, force bool) injection {
	return func(ctx context.Context, s *scene) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: of(s).name}}
		var options []client.DeleteOption
		if force {
			options = append(options, client.GracePeriodSeconds(0))
		}
		s.strike()
		return s.Delete(ctx, pod, options...)
	}
}

// cutPrimary cuts the primary's node off from what from says; from everything where
// that is nothing.
func cutPrimary(from func(*scene) []string) injection {
	return func(ctx context.Context, s *scene) error {
		return s.cut(ctx, s.primary.node, from(s))
	}
}

func cutStandby(ctx context.Context, s *scene) error { return s.cut(ctx, standbyOf(s).node, nil) }

func (s *scene) cut(ctx context.Context, node string, from []string) error {
	args := []string{"node", "cut", node}
	if len(from) > 0 {
		args = append(args, "--from", strings.Join(from, ","))
	}
	s.later(node+" is joined", func(ctx context.Context) error { return s.localkube.do(ctx, "node", "join", node) })
	s.strike()
	return s.localkube.do(ctx, args...)
}

func killNode(ctx context.Context, s *scene) error {
	node := s.primary.node
	s.later(node+" has its power back",
		func(ctx context.Context) error { return s.localkube.do(ctx, "node", "start", node) })
	s.strike()
	return s.localkube.do(ctx, "node", "kill", node)
}

func stopAPI(ctx context.Context, s *scene) error {
	// The last one is started first: the API server needs etcd.
	for _, part := range []string{"api", "etcd"} {
		s.later(part+" runs again", func(ctx context.Context) error { return s.localkube.do(ctx, "start", part) })
		if err := s.localkube.do(ctx, "stop", part); err != nil {
			return err
		}
	}
	return nil
}

// Where the operator runs.
var operator = client.ObjectKey{Namespace: "toban-system", Name: "toban-operator"}

func stopOperator(ctx context.Context, s *scene) error {
	var d appsv1.Deployment
	if err := s.Get(ctx, operator, &d); err != nil {
		return fmt.Errorf("look for the operator: %w", err)
	}
	replicas := int32(1)
	if d.Spec.Replicas != nil && *d.Spec.Replicas > 0 {
		replicas = *d.Spec.Replicas
	}
	s.later("the operator is back", func(ctx context.Context) error { return s.scaleOperator(ctx, replicas) })
	if err := s.scaleOperator(ctx, 0); err != nil {
		return err
	}
	return until(ctx, time.Minute, func(ctx context.Context) error {
		var pods corev1.PodList
		err := s.List(ctx, &pods, client.InNamespace(operator.Namespace),
			client.MatchingLabels(d.Spec.Selector.MatchLabels))
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d operators still run", len(pods.Items))
		}
		return err
	})
}

func (w world) scaleOperator(ctx context.Context, replicas int32) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: operator.Namespace, Name: operator.Name}}
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	return w.Patch(ctx, d, client.RawPatch("application/merge-patch+json", []byte(patch)))
}

// losePgdata deletes a standby's data directory, through the root directory that its
// own processes have, and then kills its postmaster.
func losePgdata(_ context.Context, s *scene) error {
	found, err := pick(standbyOf(s).uid, "postmaster", process.postmaster)
	if err != nil {
		return err
	}
	data := fmt.Sprintf("/proc/%d/root%s", found[0].pid, naming.PathData)
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err != nil {
		return fmt.Errorf("this is no data directory: %w", err)
	}
	s.strike()
	err = os.RemoveAll(data)
	if killed := send(found, syscall.SIGKILL); killed != nil || err == nil {
		return killed
	}
	// The server may have put a file where one was just deleted; it runs no more.
	return nil
}

// ballast fills the volume in ever smaller pieces, until not a page fits.
const ballast = `for size in 64M 4M 256K 8K; do
	n=0; while fallocate -l $size /pgdata/drill-ballast.$size.$n 2>/dev/null; do n=$((n+1)); done
	rm -f /pgdata/drill-ballast.$size.$n
done`

// flood writes 128 MB of WAL that no table sees: more than the files that the server
// keeps to write over.
const flood = `SELECT pg_logical_emit_message(false, 'drill', repeat('x', 1048576)) FROM generate_series(1, 128)`

// fillDisk fills the volume; the fault strikes when it is full and more is written.
func fillDisk(ctx context.Context, s *scene) error {
	pod := s.primary.name
	inside := func(ctx context.Context, args ...string) error {
		_, err := s.user.Kubectl(ctx, append([]string{"exec", pod, "--"}, args...)...)
		return err
	}
	s.later("the disk has room again", func(ctx context.Context) error {
		return inside(ctx, "sh", "-c", "rm -f /pgdata/drill-ballast.*")
	})
	if err := inside(ctx, "sh", "-c", ballast); err != nil {
		return err
	}
	s.strike()
	once, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	_ = inside(once, "psql", "-U", "postgres", "-Xqc", flood) // it is to fail
	return nil
}

// annotationSwitchover asks for another primary, switchoverAny whichever is best.
const (
	annotationSwitchover = "toban.dev/switchover"
	switchoverAny        = "any"
)

func switchover(ctx context.Context, s *scene) error {
	db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotationSwitchover, switchoverAny)
	s.strike()
	return s.Patch(ctx, db, client.RawPatch("application/merge-patch+json", []byte(patch)))
}

// lossPercent of the packets that come to a node from another one.
const lossPercent = 30

// loseAndBurn drops packets by nftables, because this kernel may have no netem.
func loseAndBurn(most time.Duration) injection {
	return func(ctx context.Context, s *scene) error {
		s.later("no more packets are lost", s.cluster.mend)
		s.strike()
		if err := s.cluster.lose(ctx, lossPercent, func(string, string) bool { return true }); err != nil {
			return err
		}
		stop, err := burn(runtime.NumCPU(), most+time.Minute)
		if err != nil {
			return err
		}
		s.later("the processors are free", func(context.Context) error { stop(); return nil })
		return nil
	}
}
