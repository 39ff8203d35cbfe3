package process

import (
	"strconv"

	"github.com/spf13/cobra"

	"toban.dev/internal/naming"
	"toban.dev/internal/work"
)

// Archive is `toban archive`: what belongs to an archive on a volume.
func Archive() *cobra.Command {
	c := &cobra.Command{Use: "archive", Short: "Work on an archive that lies on a volume", Hidden: true}
	c.AddCommand(archiveServe())
	return c
}

// archiveServe is `toban archive serve`: the process in the Deployment NAME-archive.
func archiveServe() *cobra.Command {
	var o work.ArchiveOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the objects in a folder to a SampleDB's instances and backups",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return work.ServeArchive(c.Context(), o) },
	}
	f := c.Flags()
	f.StringVar(&o.Folder, "folder", naming.PathArchive, "the folder with the objects")
	authorityFlag(f, &o.Authority)
	f.StringVar(&o.Path, "path", "",
		"the SampleDB's archive in it: only that, and those of other major versions, may be written to")
	f.StringVar(&o.Listen, "listen", ":"+strconv.Itoa(naming.PortAgent), "where to serve objects over HTTPS")
	f.StringVar(&o.Probe, "probe", ":"+strconv.Itoa(naming.PortProbe), "where to answer the kubelet over HTTP")
	return c
}
