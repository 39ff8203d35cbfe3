package v1

// The types of a SampleDB's conditions about zones and who should lead. Nothing waits for them.
const (
	// ConditionSurvivesZoneLoss is true when the instances are placed so that a primary can be elected, and commits be
	// acknowledged, whichever one zone is lost. It is about where they are, not about whether they are well. It exists
	// with several instances, if a zone of one is known or the spec names zones.
	ConditionSurvivesZoneLoss = "SurvivesZoneLoss"
	// ConditionPrimaryPreferred is true when no instance is preferred by `spec.primary` to the one that leads. It
	// exists with several instances and `spec.primary`.
	ConditionPrimaryPreferred = "PrimaryPreferred"
)

// Reasons of SurvivesZoneLoss. None of them keeps Ready from being true.
const (
	// ReasonZonesSpread: whichever one zone is lost, the instances of the others can elect a primary and acknowledge
	// commits. With two instances they need the Kubernetes API for that, which must not be in the lost zone alone.
	// To do: nothing.
	ReasonZonesSpread = "ZonesSpread"

	// ReasonOneZone: all instances are in one zone.
	// To do: if there are nodes in other zones, move instances there, one after the other, as docs/failover.md says;
	// `spec.zoneSpread: Required` keeps them apart from then on.
	ReasonOneZone = "OneZone"

	// ReasonZoneHoldsMajority: if the zone that the message names is lost, the other instances can't elect a primary,
	// or can't acknowledge commits. Writes wait then until it is back.
	// To do: move an instance to another zone, as docs/failover.md says; the message says how many zones it takes. Two
	// are not enough for three instances or more.
	ReasonZoneHoldsMajority = "ZoneHoldsMajority"

	// ReasonZonesUnknown: it is not known in which zone an instance is that makes the difference.
	// To do: Kubernetes 1.35 and later gives a Pod the label `topology.kubernetes.io/zone` of its node when it puts it
	// there. Label the nodes, then delete the Pods one after the other, or label them too.
	ReasonZonesUnknown = "ZonesUnknown"
)

// Reasons of PrimaryPreferred. None of them keeps Ready from being true.
const (
	// ReasonPreferred: no instance is preferred to the one that leads.
	// To do: nothing.
	ReasonPreferred = "Preferred"

	// ReasonPreferredUnknown: it is not known which instance is preferred, because the zone of one is not known, or
	// nobody leads.
	// To do: see the condition SurvivesZoneLoss for zones, and Available for the primary.
	ReasonPreferredUnknown = "PreferredUnknown"

	// ReasonPreferredUnready: the instance that is preferred can't take over; the message says why.
	// To do: bring that instance back. Then the lead is handed over as `spec.primary.handOver` says.
	ReasonPreferredUnready = "PreferredUnready"

	// ReasonHandOverWaits: a preferred instance could take over, and the moment is not good; the message says what it
	// waits for.
	// To do: wait. To have it at once: `kubectl toban switchover NAME`.
	ReasonHandOverWaits = "HandOverWaits"

	// ReasonHandOverOnRequest: a preferred instance could take over, and `spec.primary.handOver: OnRequest` leaves that
	// to you.
	// To do: `kubectl toban switchover NAME` at a good moment.
	ReasonHandOverOnRequest = "HandOverOnRequest"

	// ReasonHandingOver: the primary is being asked to hand over to the preferred instance.
	// To do: wait some seconds.
	ReasonHandingOver = "HandingOver"
)
