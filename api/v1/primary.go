package v1

// PrimarySpec says which instances should be the primary. It is a preference and no rule of elections: an instance that
// is not preferred leads where no other can. The lead is only handed over in order, which loses nothing.
//
// +kubebuilder:validation:XValidation:rule="has(self.zones) && self.zones.size() > 0 || has(self.avoid) && self.avoid.size() > 0",message="spec.primary must say what is preferred: give primary.zones or primary.avoid, or leave primary out"
type PrimarySpec struct {
	// The zones in which the primary should be, the most preferred first: values of the label
	// topology.kubernetes.io/zone of nodes. An instance in another zone leads where none in these can.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(zone, zone.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",message="primary.zones must have names of zones, such as eu-central-1a: values of the label topology.kubernetes.io/zone of your nodes"
	// +kubebuilder:validation:XValidation:rule="self.all(zone, self.exists_one(other, other == zone))",message="primary.zones names a zone twice"
	// +optional
	Zones []string `json:"zones,omitempty"`

	// The instances that should be the primary only where no other can, by their number: 2 is NAME-2. This goes before
	// zones.
	// +listType=set
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:XValidation:rule="self.all(number, number >= 0 && number <= 8)",message="primary.avoid must have numbers of instances, from 0 to 8: 2 is NAME-2"
	// +optional
	Avoid []int32 `json:"avoid,omitempty"`

	// When the primary hands over to a preferred instance: Automatic is when all has been well for half a minute, at
	// most once an hour; InWindow the same while update.window is open; OnRequest only when it hands over anyway. By
	// default: Automatic.
	// +optional
	HandOver HandOver `json:"handOver,omitempty"`
}

// HandOver says when the primary hands over to a preferred instance.
// +kubebuilder:validation:Enum=Automatic;InWindow;OnRequest
type HandOver string

// The values of HandOver.
const (
	HandOverAutomatic HandOver = "Automatic"
	HandOverInWindow  HandOver = "InWindow"
	HandOverOnRequest HandOver = "OnRequest"
)

// ZoneSpread says how instances are spread over zones.
// +kubebuilder:validation:Enum=Preferred;Required
type ZoneSpread string

// The values of ZoneSpread.
const (
	ZoneSpreadPreferred ZoneSpread = "Preferred"
	ZoneSpreadRequired  ZoneSpread = "Required"
)
