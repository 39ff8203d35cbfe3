package bucket

import (
	"cmp"
	"strings"
)

// Place names where a bucket is, with its prefix, for people and to tell it from others. There is nothing in it that
// may change while the objects stay: no credentials, no authority, no region.
func (c Config) Place() string {
	switch {
	case c.S3 != nil:
		return cmp.Or(strings.TrimSuffix(c.S3.Endpoint, "/"), "s3:/") + "/" + joined(c.S3.Bucket, c.Prefix)
	case c.GCS != nil:
		return cmp.Or(strings.TrimSuffix(c.GCS.Endpoint, "/"), "gs:/") + "/" + joined(c.GCS.Bucket, c.Prefix)
	case c.Azure != nil:
		a := c.Azure
		return cmp.Or(strings.TrimSuffix(a.Endpoint, "/"), "https://"+a.Account+".blob.core.windows.net") + "/" +
			joined(a.Container, c.Prefix)
	case c.Volume != nil:
		return strings.TrimSuffix(c.Volume.URL+"/"+joined(c.Prefix), "/")
	}
	return strings.TrimSuffix(c.Folder+"/"+joined(c.Prefix), "/")
}

func joined(parts ...string) string {
	var all []string
	for _, part := range parts {
		if part = strings.Trim(part, "/"); part != "" {
			all = append(all, part)
		}
	}
	return strings.Join(all, "/")
}
