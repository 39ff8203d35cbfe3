package kube

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"toban.dev/internal/agent/publish"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// The role of a Pod is written together with the term of who writes it (naming.AnnotationRole), and only if the Pod is
// as it was when that was decided. So what a former leader has sent, and what reaches the API late, takes the label
// neither from the present leader nor to another Pod.

// mark is how a Pod was when its role was written or read.
type mark struct {
	// written is the text of the annotation, "" for none; term is that in it.
	written string
	term    uint64
	role    protocol.Role
	// version is the Pod's resourceVersion: that it is the same is asked for where there is no annotation or no label.
	version             string
	annotated, labelled bool
}

// markOf is how a Pod is marked. An annotation that has no term is one of the term 0.
func markOf(pod *corev1.Pod) *mark {
	m := &mark{
		written: pod.Annotations[naming.AnnotationRole], role: protocol.Role(pod.Labels[naming.LabelRole]),
		version: pod.ResourceVersion, annotated: len(pod.Annotations) > 0, labelled: len(pod.Labels) > 0,
	}
	term, _, _ := strings.Cut(m.written, ".")
	m.term, _ = strconv.ParseUint(term, 10, 64)
	return m
}

// Publish labels this instance's Pod with its role, which the Services select by. A new primary takes the label from
// all others, whose agents may not be able to. A primary of an earlier term than one that is on record at a Pod changes
// nothing there: publish.ErrLaterTerm.
//
// Its own label comes first. kube-proxy takes over a change at once, and the next one only a second later
// (minSyncPeriod, Kubernetes 1.36): if the former primary were taken out before, the Service would lead to nobody for
// that second. Nobody is taken out either while the new one can't be put there.
func (k *Cluster) Publish(ctx context.Context, wish publish.Wish, others []string) error {
	err := k.label(ctx, wish)
	if err != nil || wish.Role != protocol.RolePrimary {
		return err
	}
	taken := make(chan error, len(others))
	for _, pod := range others {
		go func() { taken <- k.depose(ctx, pod, wish) }()
	}
	for range others {
		err = errors.Join(err, <-taken)
	}
	return err
}

// Published is the role on this instance's Pod.
func (k *Cluster) Published(ctx context.Context) (protocol.Role, error) {
	m, err := k.readPod(ctx, k.pod)
	if err != nil {
		return protocol.RoleNone, err
	}
	k.written.Store(m)
	return m.role, nil
}

// attempts is how often a role is written when the Pod is another way than it was read.
const attempts = 4

// label labels this instance's own Pod. It is read before only where it is not known how it is, because clients wait.
func (k *Cluster) label(ctx context.Context, wish publish.Wish) error {
	before := k.written.Load()
	var err error
	for range attempts {
		if before == nil {
			if before, err = k.readPod(ctx, k.pod); err != nil {
				return err
			}
		}
		if wish.Role == protocol.RolePrimary && before.term > wish.Term && !wish.Anyway {
			return fmt.Errorf("label the Pod %s: %w", k.pod, publish.ErrLaterTerm)
		}
		var after *mark
		after, err = k.writeRole(ctx, k.pod, before, wish.Term,
			operation{Op: "add", Path: "/metadata/labels/" + escaped(naming.LabelRole), Value: string(wish.Role)})
		if err == nil {
			k.written.Store(after)
			return nil
		}
		k.written.Store(nil)
		if !apierrors.IsInvalid(err) { // the Pod is not as it was
			return fmt.Errorf("label the Pod %s: %w", k.pod, err)
		}
		before = nil
	}
	return fmt.Errorf("label the Pod %s: refused %d times, as if it changed each time: %w", k.pod, attempts, err)
}

// depose takes the primary's label from another Pod, and has it on record there who leads: no primary of an earlier
// term labels it after that.
func (k *Cluster) depose(ctx context.Context, pod string, wish publish.Wish) error {
	var err error
	for range attempts {
		var before *mark
		before, err = k.readPod(ctx, pod)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if before.term > wish.Term && !wish.Anyway {
			return fmt.Errorf("take the role from the Pod %s: %w", pod, publish.ErrLaterTerm)
		}
		var take []operation
		if path := "/metadata/labels/" + escaped(naming.LabelRole); before.role == protocol.RolePrimary {
			take = []operation{{Op: "test", Path: path, Value: string(before.role)}, {Op: "remove", Path: path}}
		}
		_, err = k.writeRole(ctx, pod, before, wish.Term, take...)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsInvalid(err) {
			return fmt.Errorf("take the role from the Pod %s: %w", pod, err)
		}
	}
	return fmt.Errorf("take the role from the Pod %s: refused %d times, as if it changed each time: %w", pod, attempts,
		err)
}

func (k *Cluster) readPod(ctx context.Context, pod string) (*mark, error) {
	got, err := k.client.CoreV1().Pods(k.namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the Pod %s: %w", pod, err)
	}
	return markOf(got), nil
}

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// escaped is a key in the path of an operation (RFC 6901).
func escaped(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// writeRole changes a Pod that is as it was before, and puts the term on record there, or the later one that is. Each
// write differs from all others: one that is repeated, because nobody knows whether it was done, is not done twice.
func (k *Cluster) writeRole(
	ctx context.Context, pod string, before *mark, term uint64, what ...operation,
) (*mark, error) {
	path := "/metadata/annotations/" + escaped(naming.AnnotationRole)
	var patch []operation
	if before.written != "" && before.labelled {
		patch = []operation{{Op: "test", Path: path, Value: before.written}}
	} else {
		patch = []operation{{Op: "test", Path: "/metadata/resourceVersion", Value: before.version}}
	}
	if !before.annotated {
		patch = append(patch, operation{Op: "add", Path: "/metadata/annotations", Value: map[string]string{}})
	}
	if !before.labelled {
		patch = append(patch, operation{Op: "add", Path: "/metadata/labels", Value: map[string]string{}})
	}
	patch = append(patch, operation{
		Op: "add", Path: path, Value: fmt.Sprintf("%d.%.6s", max(term, before.term), rand.Text()),
	})
	text, err := json.Marshal(append(patch, what...))
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	after, err := k.client.CoreV1().Pods(k.namespace).Patch(ctx, pod, types.JSONPatchType, text,
		metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return nil, err
	}
	return markOf(after), nil
}
