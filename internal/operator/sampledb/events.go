package sampledb

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/archive"
	"toban.dev/internal/operator/sampledb/fleet"
	"toban.dev/internal/operator/sampledb/second"
	"toban.dev/internal/operator/sampledb/secrets"
	"toban.dev/internal/operator/sampledb/versions"
	"toban.dev/internal/operator/sampledb/world"
)

// changes are the events that a change of the status tells.
func changes(old, now v1.SampleDBStatus) []world.Event {
	out := primaryChanges(old, now)
	add := func(kind, reason, message string) {
		out = append(out, world.Event{Kind: kind, Reason: reason, Message: message})
	}
	if c := world.Turned(old, now, v1.ConditionReady); c != nil && c.Status == metav1.ConditionTrue {
		add(corev1.EventTypeNormal, world.EventReady, c.Message)
	}
	if c := world.Turned(old, now, v1.ConditionInitialized); c != nil {
		switch {
		case c.Status == metav1.ConditionTrue:
			add(corev1.EventTypeNormal, world.EventInitialized, c.Message)
		case c.Reason != v1.ReasonInitRunning:
			add(corev1.EventTypeWarning, world.EventInitFailed, c.Message)
		}
	}
	if c := world.Turned(old, now, v1.ConditionRestored); c != nil && c.Status == metav1.ConditionTrue {
		add(corev1.EventTypeNormal, world.EventRestored, c.Message)
	}
	if c := world.Turned(old, now, v1.ConditionUpToDate); c != nil && c.Status == metav1.ConditionFalse &&
		now.Phase == phaseReady { // else an update may be under way
		add(corev1.EventTypeWarning, world.EventOutdated, c.Message)
	}
	out = append(out, versions.CollationChanges(old, now)...)
	out = append(out, secrets.CertificateChanges(old, now)...)
	out = append(out, rotationChanges(old, now)...)
	out = append(out, fleet.ZoneChanges(old, now)...)
	out = append(out, configChanges(old, now)...)
	out = append(out, storageChanges(old, now)...)
	out = append(out, roomChanges(old, now)...)
	out = append(out, archive.ArchiveChanges(old, now)...)
	out = append(out, second.CopyChanges(old, now)...)
	out = append(out, archive.BrokenChanges(old, now)...)
	out = append(out, archive.KeyChanges(old, now)...)
	if old.Phase != now.Phase && now.Phase == phaseBlocked {
		if c := meta.FindStatusCondition(now.Conditions, v1.ConditionReady); c != nil {
			add(corev1.EventTypeWarning, world.EventBlocked, fmt.Sprintf("%s: %s", c.Reason, c.Message))
		}
	}
	return out
}

// rotationChanges tell of another password, and of each step to another authority.
func rotationChanges(old, now v1.SampleDBStatus) (out []world.Event) {
	if c := world.Turned(old, now, v1.ConditionPasswordRotated); c != nil && c.Status == metav1.ConditionTrue {
		out = append(out, world.Normal(world.EventPasswordRotated, c.Message))
	}
	if c := world.Turned(old, now, v1.ConditionAuthorityRotated); c != nil && c.Reason != v1.ReasonAuthorityWaits {
		out = append(out, world.Normal(world.EventAuthorityRotated, c.Reason+": "+c.Message))
	}
	return out
}

// primaryChanges tell who takes writes, or why nobody does.
func primaryChanges(old, now v1.SampleDBStatus) []world.Event {
	var out []world.Event
	add := func(kind, reason, message string) {
		out = append(out, world.Event{Kind: kind, Reason: reason, Message: message})
	}
	switch last := cmp.Or(old.Primary, old.LastPrimary); {
	case now.Primary == "" || now.Primary == old.Primary:
	case last == "" || last == now.Primary:
		add(corev1.EventTypeNormal, world.EventPrimaryReady, now.Primary+" takes writes")
	default:
		add(corev1.EventTypeNormal, world.EventPrimaryChanged, fmt.Sprintf("from %s to %s", last, now.Primary))
	}
	if now.Refusal != "" && now.Refusal != old.Refusal {
		add(corev1.EventTypeWarning, world.EventNotPromoted,
			fmt.Sprintf("%s: %s", now.Refusal, messageOf(now, v1.ConditionAvailable)))
	}
	if c := world.Turned(old, now, v1.ConditionAvailable); c != nil &&
		c.Status == metav1.ConditionFalse && old.Primary != "" && now.Stop == nil {
		add(corev1.EventTypeWarning, world.EventNoPrimary, c.Message)
	}
	return out
}

func configChanges(old, now v1.SampleDBStatus) []world.Event {
	c := world.Turned(old, now, v1.ConditionConfigurationApplied)
	switch {
	case c == nil:
	case c.Reason == v1.ReasonParameterRejected:
		return []world.Event{world.Warning(world.EventRejected, c.Message)}
	case c.Status == metav1.ConditionTrue:
		return []world.Event{world.Normal(world.EventApplied, c.Message)}
	}
	return nil
}

func storageChanges(old, now v1.SampleDBStatus) []world.Event {
	c := world.Turned(old, now, v1.ConditionStorageReady)
	was := meta.FindStatusCondition(old.Conditions, v1.ConditionStorageReady)
	switch {
	case c == nil || was == nil:
	case c.Reason == v1.ReasonResizeRefused:
		return []world.Event{world.Warning(world.EventResizeRefused, c.Message)}
	case c.Reason == v1.ReasonDataDoesNotFit, c.Reason == v1.ReasonNeedsAnotherInstance:
		return []world.Event{world.Warning(world.EventNotReplaced, c.Message)}
	case c.Status == metav1.ConditionTrue && was.Reason == v1.ReasonResizing:
		return []world.Event{world.Normal(world.EventResized, c.Message)}
	}
	return nil
}

// roomChanges tell that a volume gets short, each reason once, and that none does any more.
func roomChanges(old, now v1.SampleDBStatus) []world.Event {
	c := world.Turned(old, now, v1.ConditionHasRoom)
	switch {
	case c == nil:
	case c.Status == metav1.ConditionFalse:
		return []world.Event{world.Warning(world.EventVolumeShort, c.Reason+": "+c.Message)}
	case meta.IsStatusConditionFalse(old.Conditions, v1.ConditionHasRoom):
		return []world.Event{world.Normal(world.EventRoomAgain, c.Message)}
	}
	return nil
}

func messageOf(status v1.SampleDBStatus, kind string) string {
	if c := world.Condition(status, kind); c != nil {
		return c.Message
	}
	return ""
}
