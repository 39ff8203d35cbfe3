package process

import "toban.dev/internal/work/second"

// secondStore is what the Pod does that copies an archive into the second store.
var secondStore = podWork{kinds: []kind{
	{
		"second", "Copy the archive into spec.backup.secondStore (in a Pod of its own)", "backup second",
		does(second.Copy, archiveFlags),
	},
}}
