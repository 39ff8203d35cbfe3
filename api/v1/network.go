package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NetworkSpec says which clients reach the PostgreSQL servers over the network.
type NetworkSpec struct {
	// Which clients may reach PostgreSQL's port: those that match an item, written as in `ingress.from` of a
	// NetworkPolicy; without items, all. Toban's own Pods of this SampleDB always may, and those of the MyApps of its
	// namespace that use it. The cluster's network must enforce NetworkPolicies.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	From []NetworkPeer `json:"from,omitempty"`
}

// NetworkPeer is Pods or addresses, written as in a NetworkPolicy.
//
// +kubebuilder:validation:XValidation:rule="has(self.ipBlock) != (has(self.podSelector) || has(self.namespaceSelector))",message="each item of from must have either ipBlock, or podSelector, namespaceSelector or both of these"
type NetworkPeer struct {
	// Pods by their labels; of the SampleDB's own namespace, unless namespaceSelector is there too. {} is all of them.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// Namespaces by their labels; every one has kubernetes.io/metadata.name with its name. {} is all of them.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// Addresses outside of the cluster. Behind a NodePort or a LoadBalancer the cluster may show a node's address in
	// place of the client's.
	// +optional
	IPBlock *IPBlock `json:"ipBlock,omitempty"`
}

// IPBlock is a range of addresses.
//
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.cidr) || !has(self.except) || self.except.all(e, !isCIDR(e) || (cidr(self.cidr).containsCIDR(cidr(e)) && cidr(e).prefixLength() > cidr(self.cidr).prefixLength()))",message="each item of except must be a smaller range inside of cidr"
type IPBlock struct {
	// The range, such as 10.0.0.0/8 or 2001:db8::/64.
	// +required
	CIDR CIDR `json:"cidr"`

	// Ranges inside of it that are left out.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Except []CIDR `json:"except,omitempty"`
}

// CIDR is a range of addresses as CIDR writes it.
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="a range of addresses must be written as 10.0.0.0/8 or 2001:db8::/64"
type CIDR string
