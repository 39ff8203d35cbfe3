package desired

// The names of what the packages below mount where it is mounted in all Pods.
const (
	VolumeProgram, VolumeConfig, VolumeAuthority = volumeProgram, volumeConfig, volumeAuthority
	VolumeRun, VolumeTmp, PathTmp                = volumeRun, volumeTmp, pathTmp
	ConfigMode                                   = configMode
	InitUser, InstanceUser                       = initUser, instanceUser
)

// The parts of which the packages below make the objects of annexes, as this one makes those of the core.
var (
	Meta, Merged, SettingsConfigMap    = meta, merged, settingsConfigMap
	OperatorOnly                       = operatorOnly
	AuxiliaryPod, VerifyPod            = auxiliaryPod, verifyPod
	InstallContainer, WithWAL          = installContainer, withWAL
	ContainerSecurity                  = containerSecurity
	Requests, FieldEnv                 = requests, fieldEnv
	AuthorityVolume                    = authorityVolume
	EmptyVolume, ClaimVolume           = emptyVolume, claimVolume
	Annotated, ServerNames, OfRevision = annotated, serverNames, ofRevision
	RevisionOfSecret                   = secretRevision
)
