package front

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/sampledb/world/worldtest"
)

// What keeps a pooler's Pod from being made or from running is told, and not that it is coming.
func TestWhatKeepsAPoolerFromComingIsTold(t *testing.T) {
	away := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason: "ImagePullBackOff", Message: "no such host",
	}}
	pod := func(change func(*corev1.Pod)) corev1.Pod {
		out := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x-pool-a"}}
		out.Status.ContainerStatuses = []corev1.ContainerStatus{{Image: "pgbouncer:none", State: away}}
		change(&out)
		return out
	}
	as := func(*corev1.Pod) {}
	ready := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	for name, c := range map[string]struct {
		pods          []corev1.Pod
		change        func(*appsv1.Deployment)
		reason, words string
	}{
		"its Pods are being made": {nil, nil, v1.ReasonPoolerComing, "1 of 2 Pods take clients; some are being made"},
		"the image can't be pulled": {[]corev1.Pod{pod(as)}, nil, v1.ReasonImageUnusable,
			"1 of 2 Pods take clients; the image pgbouncer:none can't be pulled for x-pool-a: no such host"},
		"it could not be, and serves": {[]corev1.Pod{pod(ready)}, nil, v1.ReasonPoolerComing, "being made"},
		"that Pod goes": {[]corev1.Pod{pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })}, nil,
			v1.ReasonPoolerComing, "being made"},
		"a quota refuses it": {nil, func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota",
			}}
		}, v1.ReasonPodRefused, "the cluster refuses a Pod: exceeded quota"},
		"somebody has paused it": {nil, func(d *appsv1.Deployment) { d.Spec.Paused = true }, v1.ReasonPoolerComing,
			"kubectl rollout resume deployment/x-pool"},
	} {
		db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
		db.Spec.Pooler = &v1.PoolerSpec{Instances: 2}
		two := int32(2)
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "x-pool"}}
		d.Spec.Replicas, d.Status.ReadyReplicas, d.Status.Replicas = &two, 1, 2
		if c.change != nil {
			c.change(d)
		}
		s := New(worldtest.Act(world.Core{DB: db}))
		s.Seen.Poolers, s.Seen.PoolerPods = map[string]*appsv1.Deployment{"x-pool": d}, c.pods
		if got := s.PoolerReady(); got.Status != metav1.ConditionFalse || got.Reason != c.reason ||
			!strings.Contains(got.Message, c.words) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
