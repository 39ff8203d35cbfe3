package volume

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"toban.dev/internal/ha"
)

// memoryFormat is the newest format of a hard state that is understood here. A release writes a higher one,
// as the member "format", when those before must not work with what it writes. What they may simply not
// know needs none: it is kept.
const memoryFormat = 0

// DecodeHardState understands the hard state of a voter or of the witness, and refuses one of a newer format.
func DecodeHardState(text []byte) (m ha.HardState, err error) {
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return m, err
	}
	if head.Format > memoryFormat {
		return m, fmt.Errorf("it has the format %d, of a newer release of Toban, and this one knows none after %d: "+
			"run that release or a newer one", head.Format, memoryFormat)
	}
	return m, json.Unmarshal(text, &m)
}

// EncodeHardState is a hard state as it is to be written in place of a text, nil for none. What that has and a newer
// release has written is kept: members that are not known here, and also such within one that has not changed. Within
// one that has, they were about what it said before.
func EncodeHardState(before []byte, m ha.HardState) ([]byte, error) {
	next, err := json.Marshal(m)
	if err != nil || len(before) == 0 {
		return next, err
	}
	understood, err := DecodeHardState(before)
	if err != nil {
		return nil, err
	}
	known, err := json.Marshal(understood)
	if err != nil {
		return nil, err
	}
	return keepUnknown(before, known, next)
}

// keepUnknown is the JSON object next with what another had that is not in known, which is what was understood of that
// one.
func keepUnknown(before, known, next []byte) ([]byte, error) {
	var was, understood, is map[string]json.RawMessage
	err := errors.Join(json.Unmarshal(before, &was), json.Unmarshal(known, &understood), json.Unmarshal(next, &is))
	if err != nil {
		return nil, err
	}
	for name, value := range was {
		now, there := is[name]
		same, ours := understood[name]
		if !ours && !there || ours && bytes.Equal(same, now) {
			is[name] = value
		}
	}
	return json.Marshal(is)
}
