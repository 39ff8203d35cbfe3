package v1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UpgradeSpec says how the SampleDB moves on to another major version, when spec.version is raised.
type UpgradeSpec struct {
	// InPlace, the default: seconds without writes; or BlueGreen, on trial: clients move to a second set of
	// instances.
	// +optional
	Strategy UpgradeStrategy `json:"strategy,omitempty"`

	// Whether a backup is taken right before: Take or None. By default: Take, where there is an archive.
	// +optional
	Backup UpgradeBackup `json:"backup,omitempty"`

	// How the files become those of the new version: Clone shares their blocks (XFS, Btrfs), Link gives them a second
	// name, Copy needs as much room again. By default: Clone where the volume can, else Link.
	// +optional
	Method UpgradeMethod `json:"method,omitempty"`

	// Whether it is rehearsed on a copy, restored from the last backup: Always or Never. A problem there, or no
	// rehearsal, ends it before any client is sent away. By default: Always, where there is a backup.
	// +optional
	Rehearse UpgradeRehearsal `json:"rehearse,omitempty"`

	// For how long the former data, or with BlueGreen the former side, is kept after an upgrade, for instance 24h;
	// the annotation toban.dev/accept-upgrade ends that. By default: 168h, a week.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('8760h')",message="upgrade.keep must be from 0s to 8760h, which is a year"
	// +optional
	Keep *metav1.Duration `json:"keep,omitempty"`
}

// UpgradeStrategy says how the data gets to another major version.
// +kubebuilder:validation:Enum=InPlace;BlueGreen
type UpgradeStrategy string

// The values of UpgradeStrategy.
const (
	StrategyInPlace   UpgradeStrategy = "InPlace"
	StrategyBlueGreen UpgradeStrategy = "BlueGreen"
)

// UpgradeBackup says whether a backup is taken before an upgrade.
// +kubebuilder:validation:Enum=Take;None
type UpgradeBackup string

// The values of UpgradeBackup.
const (
	UpgradeBackupTake UpgradeBackup = "Take"
	UpgradeBackupNone UpgradeBackup = "None"
)

// UpgradeRehearsal says whether an upgrade is rehearsed.
// +kubebuilder:validation:Enum=Always;Never
type UpgradeRehearsal string

// The values of UpgradeRehearsal.
const (
	RehearseAlways UpgradeRehearsal = "Always"
	RehearseNever  UpgradeRehearsal = "Never"
)

// UpgradeMethod says how files become those of the new version.
// +kubebuilder:validation:Enum=Clone;Link;Copy
type UpgradeMethod string

// The values of UpgradeMethod.
const (
	UpgradeClone UpgradeMethod = "Clone"
	UpgradeLink  UpgradeMethod = "Link"
	UpgradeCopy  UpgradeMethod = "Copy"
)

// UpgradeStatus is how far an upgrade to another major version is, or how the last one went.
type UpgradeStatus struct {
	// What identifies it. The former data is in the folder before-ID of the volumes.
	ID string `json:"id"`

	// The major versions.
	From int32 `json:"from"`
	To   int32 `json:"to"`

	// Waiting, Pulling, Checking, BackingUp, Rehearsing, Preparing, Closing, Upgrading, Starting, Upgraded or Failed.
	// The database serves before Closing, after Starting, and again when an upgrade has failed.
	Step string `json:"step"`

	// When the step began.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// The condition Upgraded has the same for people.
	// +optional
	Message string `json:"message,omitempty"`

	// The way back now: Cancel, where nothing has changed yet; Back, to the former side; FormerData, which is whole on
	// a volume; Archive; None.
	// +optional
	WayBack string `json:"wayBack,omitempty"`

	// The image as the spec named it for the former version, and the one for the new version, by its digest where that
	// is known.
	// +optional
	FormerImage string `json:"formerImage,omitempty"`
	// +optional
	Image string `json:"image,omitempty"`

	// The PostgreSQL version in that image.
	// +optional
	Version string `json:"version,omitempty"`

	// What the check has found that will be otherwise, or could not find out.
	// +listType=atomic
	// +optional
	Warnings []string `json:"warnings,omitempty"`

	// The DatabaseBackup that was taken before.
	// +optional
	Backup string `json:"backup,omitempty"`

	// What the rehearsal has found.
	// +optional
	Rehearsal *RehearsalStatus `json:"rehearsal,omitempty"`

	// On whose volume the data is upgraded.
	// +optional
	Instance string `json:"instance,omitempty"`

	// Its node, and how often it has failed.
	// +optional
	Node string `json:"node,omitempty"`
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// How the files became those of the new version.
	// +optional
	Method string `json:"method,omitempty"`

	// When clients could no longer connect, and when they could again, to the millisecond (RFC 3339).
	// +optional
	ClosedAt string `json:"closedAt,omitempty"`
	// +optional
	OpenedAt string `json:"openedAt,omitempty"`

	// When it had ended well.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`

	// Why it has failed, and with which version, image and upgrade of the spec: when those change it is tried again.
	// +optional
	Failure string `json:"failure,omitempty"`
	// +optional
	FailedWith string `json:"failedWith,omitempty"`

	// That the data of the former version was removed.
	// +optional
	Accepted bool `json:"accepted,omitempty"`

	// With BlueGreen.
	// +optional
	Sides *SidesStatus `json:"sides,omitempty"`
}

// SidesStatus is how far a blue/green upgrade is (docs/bluegreen.md).
type SidesStatus struct {
	// Its step.
	Step string `json:"step"`
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// The side that serves.
	Serves string `json:"serves"`
	// Where the link begins.
	// +optional
	Position string `json:"position,omitempty"`
	// How often the change was put off.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Tried int32 `json:"tried,omitempty"`
	// +kubebuilder:validation:Minimum=0
	// +optional
	Run int32 `json:"run,omitempty"`
	// +optional
	Anew string `json:"anew,omitempty"`
	// +listType=atomic
	// +optional
	Done []string `json:"done,omitempty"`
}

// The values of SidesStatus.Serves.
const (
	SideBlue  = "Blue"
	SideGreen = "Green"
)

// The values of SidesStatus.Step besides those of UpgradeStatus.Step.
const (
	SidesPublishing   = "Publishing"
	SidesCopying      = "Copying"
	SidesFollowing    = "Following"
	SidesComparing    = "Comparing"
	SidesReady        = "Ready"
	SidesChanging     = "Changing"
	SidesChanged      = "Changed"
	SidesChangingBack = "ChangingBack"
	SidesComingHome   = "ComingHome"
	SidesCancelling   = "Cancelling"
)

// The values of UpgradeStatus.Step.
const (
	UpgradeWaiting    = "Waiting"
	UpgradePulling    = "Pulling"
	UpgradeChecking   = "Checking"
	UpgradeBackingUp  = "BackingUp"
	UpgradeRehearsing = "Rehearsing"
	UpgradePreparing  = "Preparing"
	UpgradeClosing    = "Closing"
	UpgradeUpgrading  = "Upgrading"
	UpgradeStarting   = "Starting"
	UpgradeUpgraded   = "Upgraded"
	UpgradeFailed     = "Failed"
)

// The values of UpgradeStatus.WayBack.
const (
	WayBackCancel     = "Cancel"
	WayBackBack       = "Back"
	WayBackFormerData = "FormerData"
	WayBackArchive    = "Archive"
	WayBackNone       = "None"
)

// SameAs says that two are the same upgrade, or that there is none.
func (u *UpgradeStatus) SameAs(other *UpgradeStatus) bool {
	if u == nil || other == nil {
		return u == other
	}
	return u.ID == other.ID
}

// ClosedFor is for how long no client was let in, and whether that is known.
func (u *UpgradeStatus) ClosedFor() (time.Duration, bool) {
	closed, err := time.Parse(time.RFC3339, u.ClosedAt)
	if err != nil {
		return 0, false
	}
	opened, err := time.Parse(time.RFC3339, u.OpenedAt)
	return opened.Sub(closed), err == nil
}

// Closed says that no client is let in, because the data is being upgraded.
func (u *UpgradeStatus) Closed() bool {
	return u != nil && (u.Step == UpgradeClosing || u.Step == UpgradeUpgrading || u.Step == UpgradeStarting)
}

// HasSides says that there is a blue/green upgrade which has not ended, well or not.
func (u *UpgradeStatus) HasSides() bool {
	return u != nil && u.Sides != nil && u.Sides.Step != UpgradeUpgraded && u.Sides.Step != UpgradeFailed
}

// FullStep is the step for people: with BlueGreen that of the sides, and while these come home, both.
func (u *UpgradeStatus) FullStep() string {
	switch {
	case u.Sides == nil || u.Sides.Step == "":
		return u.Step
	case u.Sides.Step == SidesComingHome && u.Step != "" && u.Step != SidesComingHome:
		return u.Sides.Step + ", " + u.Step
	}
	return u.Sides.Step
}

// GreenServes says that clients are led to the instances of the second side.
func (u *UpgradeStatus) GreenServes() bool {
	return u != nil && u.Sides != nil && u.Sides.Serves == SideGreen
}

// BlueClosed says that the SampleDB's own instances let no client in, because the second side serves or is to.
func (u *UpgradeStatus) BlueClosed() bool {
	return u.GreenServes() || u != nil && u.Sides != nil && u.Sides.Step == SidesChanging
}

// GreenClosed says that the instances of the second side let no client in.
func (u *UpgradeStatus) GreenClosed() bool {
	return !u.GreenServes() || u.Sides.Step == SidesChangingBack
}
