package desired

// The names of what the packages below mount where it is mounted in all Pods.
const (
	VolumeProgram   = volumeProgram
	VolumeConfig    = volumeConfig
	VolumeAuthority = volumeAuthority
	VolumeRun       = volumeRun
	VolumeTmp       = volumeTmp
	PathTmp         = pathTmp
	InitUser        = initUser
	InstanceUser    = instanceUser
)

// The parts of which the packages below make the objects of annexes, as this one makes those of the core.
var (
	Meta              = meta
	Merged            = merged
	SettingsConfigMap = settingsConfigMap
	OperatorOnly      = operatorOnly
	AskedPod          = askedPod
	VerifyPod         = verifyPod
	InstallContainer  = installContainer
	WithWAL           = withWAL
	ContainerSecurity = containerSecurity
	Requests          = requests
	ResourcesFor      = resourcesFor
	AuthorityVolume   = authorityVolume
	SettingsVolume    = settingsVolume
	EmptyVolume       = emptyVolume
	ClaimVolume       = claimVolume
	Annotated         = annotated
	ServerNames       = serverNames
	OfRevision        = ofRevision
	RevisionOfSecret  = secretRevision
)
