package image

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// Command is "localkube image": build, list and push images.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Make container images without a registry or a container engine",
		Long: "Make container images without a registry or a container engine.\n\n" +
			"NAME is one of " + strings.Join(Names(), ", ") + ", or the path of an image tar.\n" +
			"postgres and nginx are made of Debian's packages and stand in for the official images.",
	}
	cmd.AddCommand(buildCommand(), binaryCommand(), indexCommand(), filesCommand(), listCommand(), pushCommand())
	return cmd
}

// LoadCommand is "localkube load": bring images to the nodes that nodes returns.
// It is a function because the cluster is only known when the command runs.
func LoadCommand(nodes func(cmd *cobra.Command) ([]Node, error)) *cobra.Command {
	as := ""
	cmd := &cobra.Command{
		Use:   "load TAR|NAME...",
		Short: "Load images into every node of the cluster",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := nodes(cmd)
			if err != nil {
				return err
			}
			return eachTar(cmd, args, func(ctx context.Context, tar string) error {
				return Load(ctx, targets, tar, as)
			})
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "another name for it on the nodes, such as postgres:17")
	return cmd
}

func buildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build NAME...",
		Short: "Make images and print where their tars are",
		Args:  cobra.MinimumNArgs(1), ValidArgs: Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return eachTar(cmd, args, func(_ context.Context, tar string) error {
				fmt.Fprintln(cmd.OutOrStdout(), tar)
				return nil
			})
		},
	}
}

func binaryCommand() *cobra.Command {
	var p Program
	cmd := &cobra.Command{
		Use:   "binary --name NAME --binary PATH",
		Short: "Make an image of a static binary and print where its tar is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := builder(cmd)
			if err != nil {
				return err
			}
			tar, err := b.Binary(cmd.Context(), p)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), tar)
			return nil
		},
	}
	cmd.Flags().StringVar(&p.Name, "name", "", "name of the image, for example toban:dev")
	cmd.Flags().StringVar(&p.Path, "binary", "",
		"path of the static binary; in the image it lies at the root, under its own name")
	cmd.Flags().StringVar(&p.Description, "description", "", "what the image's label says that it is")
	_ = cmd.MarkFlagRequired("name") // it fails only for a flag that there is not
	_ = cmd.MarkFlagRequired("binary")
	return cmd
}

func indexCommand() *cobra.Command {
	var p Program
	var out string
	cmd := &cobra.Command{
		Use:   "index --name NAME --out TAR PATH...",
		Short: "Make one image of a static program for several architectures and print its digest",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			digest, err := WriteIndex(out, p, args)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), digest)
			return nil
		},
	}
	cmd.Flags().StringVar(&p.Name, "name", "", "name of the image, for example toban:v1")
	cmd.Flags().StringVar(&p.Description, "description", "", "what the label of the image says that it is")
	cmd.Flags().StringVar(&out, "out", "", "the tar to write")
	_ = cmd.MarkFlagRequired("name") // it fails only for a flag that there is not
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

func filesCommand() *cobra.Command {
	var name, out string
	var labels map[string]string
	cmd := &cobra.Command{
		Use:   "files --name NAME --out TAR FOLDER",
		Short: "Make an image that has only the files of a folder and print its digest",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			digest, err := WriteFiles(out, name, args[0], labels)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), digest)
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the image, for example toban-bundle:v1")
	cmd.Flags().StringVar(&out, "out", "", "the tar to write")
	cmd.Flags().StringToStringVar(&labels, "label", nil, "a label of the image, as KEY=VALUE; any number of them")
	_ = cmd.MarkFlagRequired("name") // it fails only for a flag that there is not
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the images that have been made",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := CacheDir()
			if err != nil {
				return err
			}
			tars, err := filepath.Glob(filepath.Join(dir, "image-*.tar"))
			if err != nil {
				return fmt.Errorf("list the image cache: %w", err)
			}
			for _, tar := range tars {
				ref, err := Inspect(tar)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%-40s %10s  %s\n", ref.Name, size(tar), tar)
			}
			return nil
		},
	}
}

func pushCommand() *cobra.Command {
	var registry string
	cmd := &cobra.Command{
		Use:   "push --registry HOST[/PATH] NAME|TAR...",
		Short: "Send images to a registry and print their names there",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return eachTar(cmd, args, func(ctx context.Context, tar string) error {
				ref, err := Push(ctx, registry, tar)
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), ref)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&registry, "registry", "", "registry, as HOST or HOST/PATH")
	_ = cmd.MarkFlagRequired("registry") // it fails only for a flag that there is not
	return cmd
}

// eachTar makes or finds the images that the arguments name, one after the
// other, and hands each tar on.
func eachTar(cmd *cobra.Command, args []string, use func(ctx context.Context, tar string) error) error {
	b, err := builder(cmd)
	if err != nil {
		return err
	}
	for _, arg := range args {
		tar, err := b.Build(cmd.Context(), arg)
		if err != nil {
			return err
		}
		if err := use(cmd.Context(), tar); err != nil {
			return err
		}
	}
	return nil
}

func builder(cmd *cobra.Command) (Builder, error) {
	dir, err := CacheDir()
	if err != nil {
		return Builder{}, err
	}
	return Builder{CacheDir: dir, Progress: cmd.ErrOrStderr()}, nil
}
