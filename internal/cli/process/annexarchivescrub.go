package process

import "toban.dev/internal/work/scrub"

// archiveScrub is what the Pod of a verification does with the rest of the archive.
var archiveScrub = podWork{verified: scrub.Archive}
