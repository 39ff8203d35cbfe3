package desired

// The names of what the packages below mount where it is mounted in all Pods.
const (
	VolumeProgram, VolumeConfig, VolumeAuthority = volumeProgram, volumeConfig, volumeAuthority
	VolumeRun, VolumeTmp, PathTmp                = volumeRun, volumeTmp, pathTmp
	InitUser, InstanceUser                       = initUser, instanceUser
)

// The parts of which the packages below make the objects of annexes, as this one makes those of the core.
var (
	Meta, Merged, SettingsConfigMap              = meta, merged, settingsConfigMap
	OperatorOnly                                 = operatorOnly
	AskedPod, VerifyPod                          = askedPod, verifyPod
	InstallContainer, WithWAL, ContainerSecurity = installContainer, withWAL, containerSecurity
	Requests, ResourcesFor                       = requests, resourcesFor
	AuthorityVolume, SettingsVolume              = authorityVolume, settingsVolume
	EmptyVolume, ClaimVolume                     = emptyVolume, claimVolume
	Annotated, ServerNames                       = annotated, serverNames
	OfRevision, RevisionOfSecret                 = ofRevision, secretRevision
)
