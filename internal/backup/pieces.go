package backup

import (
	"slices"
	"strings"
)

// folder is that of the backup in its archive, with a slash at the end.
func (b Backup) folder() string { return FolderBase + b.ID + "/" }

// piecesOf are those of a tar file, in order.
func (b Backup) piecesOf(tar string) (all []Object) {
	for _, o := range b.Pieces {
		if strings.HasPrefix(o.Name, tar+".") {
			all = append(all, o)
		}
	}
	sortPieces(all)
	return all
}

// sortPieces sorts by tar file and number. A number of more than five digits comes after those with five.
func sortPieces(all []Object) {
	slices.SortFunc(all, func(a, b Object) int {
		aTar, aNumber, _ := strings.Cut(a.Name, ".tar.")
		bTar, bNumber, _ := strings.Cut(b.Name, ".tar.")
		if aTar != bTar {
			return strings.Compare(aTar, bTar)
		}
		aNumber, _, _ = strings.Cut(aNumber, ".")
		bNumber, _, _ = strings.Cut(bNumber, ".")
		if len(aNumber) != len(bNumber) {
			return len(aNumber) - len(bNumber)
		}
		return strings.Compare(aNumber, bNumber)
	})
}
