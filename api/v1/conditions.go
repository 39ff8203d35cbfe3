package v1

// The types of a SampleDB's conditions.
const (
	// ConditionReady is true when the primary takes writes and every wanted
	// instance does what its role asks with the spec as it is.
	ConditionReady = "Ready"

	// ConditionAvailable is true when the primary takes writes.
	ConditionAvailable = "Available"

	// ConditionInitialized is true when the init Job has done its work.
	ConditionInitialized = "Initialized"

	// ConditionConfigurationApplied is true when every instance runs with the
	// parameters of the spec.
	ConditionConfigurationApplied = "ConfigurationApplied"

	// ConditionStorageReady is true when every volume has the size of the spec.
	ConditionStorageReady = "StorageReady"
)

// The reasons of a SampleDB's conditions. A reason belongs to the condition that
// its comment names; docs/reference/conditions.md says what to do about each.
const (
	// Of Ready and Available.
	ReasonReady            = "Ready"            // all is as it should be
	ReasonPrimaryReady     = "PrimaryReady"     // the primary takes writes
	ReasonCreating         = "Creating"         // first start, not there yet
	ReasonInstancesUnready = "InstancesUnready" // some instance does not do what it should
	ReasonNoPrimary        = "NoPrimary"        // no instance takes writes
	ReasonUpdating         = "Updating"         // a change of the spec is being applied
	ReasonScaling          = "Scaling"          // instances are being added or removed
	ReasonUnschedulable    = "Unschedulable"    // no node takes a Pod
	ReasonImageUnusable    = "ImageUnusable"    // the image can't be pulled or has no PostgreSQL in it
	ReasonNameTaken        = "NameTaken"        // an object that is not ours has a name that we need
	ReasonInvalidSpec      = "InvalidSpec"      // the API server refuses an object made from the spec
	ReasonCrashing         = "Crashing"         // a container of an instance ends again and again
	ReasonDeleting         = "Deleting"         // the SampleDB is being deleted
	ReasonUnknown          = "Unknown"          // the agents could not be asked

	// Of Initialized.
	ReasonInitialized       = "Initialized"       // the init Job has done its work
	ReasonInitRunning       = "InitRunning"       // the init Job waits or works
	ReasonInitFailed        = "InitFailed"        // the init Job says why; mend spec.init
	ReasonConfigMapNotFound = "ConfigMapNotFound" // spec.init names a ConfigMap or a key that is not there
	ReasonSecretNotFound    = "SecretNotFound"    // spec.init names a Secret or a key that is not there

	// Of ConfigurationApplied.
	ReasonApplied           = "Applied"           // every instance runs with it
	ReasonApplying          = "Applying"          // on its way
	ReasonRestarting        = "Restarting"        // instances restart one by one
	ReasonParameterRejected = "ParameterRejected" // PostgreSQL refuses a value; the servers run as before

	// Of StorageReady.
	ReasonBound                = "Bound"                // every volume is there with its size
	ReasonProvisioning         = "Provisioning"         // a volume is being made
	ReasonResizing             = "Resizing"             // a volume is growing
	ReasonResizeRefused        = "ResizeRefused"        // the StorageClass can't grow volumes
	ReasonStorageClassNotFound = "StorageClassNotFound" // the StorageClass does not exist
)
