package format

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// Encoder makes of content what lies in the bucket: compressed, and encrypted
// where it has a recipient. It may be used by several at once.
type Encoder struct {
	recipient age.Recipient
	encoders  sync.Pool
}

// NewEncoder makes a sealer for the public half of a key ("age1…"), or without encryption for "".
func NewEncoder(recipient string) (*Encoder, error) {
	s := &Encoder{encoders: sync.Pool{New: func() any {
		// One goroutine each: who seals much seals pieces side by side.
		encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithZeroFrames(true))
		if err != nil {
			panic(err) // only bad options are an error
		}
		return encoder
	}}}
	if recipient == "" {
		return s, nil
	}
	r, err := age.ParseX25519Recipient(recipient)
	if err != nil {
		return nil, fmt.Errorf("the recipient of the encryption is no public key of age (age1…): %w", err)
	}
	s.recipient = r
	return s, nil
}

// Name is the name of an object whose content is called plain.
func (s *Encoder) Name(plain string) string {
	if s.recipient != nil {
		return plain + endEncrypted
	}
	return plain + EndCompressed
}

// Encode compresses, and encrypts.
func (s *Encoder) Encode(content []byte) ([]byte, error) { return s.EncodeStamped(content, "") }

// stanza is the kind of a recipient in age's header that stamps an object, and is nobody's.
const stanza = "toban.dev/stamp"

// stamper adds a stamp to a header. Who decrypts skips it (age's specification, "Recipient stanza").
type stamper string

// Wrap implements age.Recipient.
func (s stamper) Wrap([]byte) ([]*age.Stanza, error) {
	return []*age.Stanza{{Type: stanza, Args: []string{string(s)}}}, nil
}

// headerLimit is how long age's header may be, in bytes; ours have some 300.
const headerLimit = 4 << 10

// StampOf is the stamp of an encrypted object, "" if it has none.
func StampOf(stored []byte) string {
	header, _, _ := bytes.Cut(stored[:min(len(stored), headerLimit)], []byte("\n--- "))
	for line := range bytes.SplitSeq(header, []byte("\n")) {
		if stamp, ok := bytes.CutPrefix(line, []byte("-> "+stanza+" ")); ok {
			return string(stamp)
		}
	}
	return ""
}

// Compress only compresses.
func (s *Encoder) Compress(content []byte) []byte {
	encoder, _ := s.encoders.Get().(*zstd.Encoder)
	defer s.encoders.Put(encoder)
	return encoder.EncodeAll(content, make([]byte, 0, len(content)/2))
}

// EncodeStamped is Encode; what is encrypted gets a stamp, unless that is "".
func (s *Encoder) EncodeStamped(content []byte, stamp string) ([]byte, error) {
	compressed := s.Compress(content)
	if s.recipient == nil {
		return compressed, nil
	}
	var sealed bytes.Buffer
	sealed.Grow(len(compressed) + len(compressed)/4096 + 1<<10) // with age's header, and 16 bytes for each 64 KiB
	recipients := []age.Recipient{s.recipient}
	if stamp != "" {
		recipients = append(recipients, stamper(stamp))
	}
	w, err := age.Encrypt(&sealed, recipients...)
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	if _, err := w.Write(compressed); err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	return sealed.Bytes(), nil
}

// Writer compresses and encrypts what is written into it, as one object. It is complete when it is closed.
func (s *Encoder) Writer(to io.Writer) (io.WriteCloser, error) {
	sealed := io.WriteCloser(nothingToClose{to})
	if s.recipient != nil {
		var err error
		if sealed, err = age.Encrypt(to, s.recipient); err != nil {
			return nil, fmt.Errorf("encrypt: %w", err)
		}
	}
	encoder, err := zstd.NewWriter(sealed, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithZeroFrames(true))
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return closesBoth{encoder, sealed}, nil
}

// nothingToClose is a writer whose end is somebody else's.
type nothingToClose struct{ io.Writer }

func (nothingToClose) Close() error { return nil }

// closesBoth is a writer that writes into another.
type closesBoth struct {
	io.WriteCloser
	to io.Closer
}

// Close ends both, the one that is written to last.
func (c closesBoth) Close() error { return errors.Join(c.WriteCloser.Close(), c.to.Close()) }

// Decoder undoes what a Encoder did. It may be used by several at once.
type Decoder struct{ identities []age.Identity }

// NewDecoder makes an opener with keys in age's own format, one a line ("AGE-SECRET-KEY-1…"), or
// without any, for what is not encrypted.
func NewDecoder(keys string) (*Decoder, error) {
	if keys == "" {
		return &Decoder{}, nil
	}
	identities, err := age.ParseIdentities(bytes.NewReader([]byte(keys)))
	if err != nil {
		return nil, fmt.Errorf("the key of the encryption is none of age (AGE-SECRET-KEY-1…): %w", err)
	}
	return &Decoder{identities}, nil
}

// Decode reads the content of an object of that name from what lies in the bucket.
func (o *Decoder) Decode(name string, sealed io.Reader) (io.ReadCloser, error) {
	_, encrypted, ok := PlainName(name)
	if !ok {
		return nil, fmt.Errorf("%s is not an object that was compressed", name)
	}
	if encrypted {
		if len(o.identities) == 0 {
			return nil, fmt.Errorf("%s is encrypted, and there is no key", name)
		}
		plain, err := age.Decrypt(sealed, o.identities...)
		if other := (*age.NoIdentityMatchError)(nil); errors.As(err, &other) {
			return nil, fmt.Errorf("decrypt %s: it is encrypted for another key than the %d in age.key: put the one "+
				"that it needs into the Secret, below the others: %w", name, len(o.identities), err)
		}
		if err != nil {
			return nil, fmt.Errorf("decrypt %s: %w", name, err)
		}
		sealed = plain
	}
	decoder, err := zstd.NewReader(sealed, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("decompress %s: %w", name, err)
	}
	return decoder.IOReadCloser(), nil
}

// ErrKey says that a key does not open what the recipient has closed.
var ErrKey = errors.New("the private half of the key does not open what its public half (the recipient) has closed")

// Try sees whether a decoder opens what an encoder makes: an ErrKey if it has another key.
func (s *Encoder) Try(decoder *Decoder) error {
	const words = "whether the key fits"
	sealed, err := s.Encode([]byte(words))
	if err != nil {
		return err
	}
	r, err := decoder.Decode(s.Name("a try"), bytes.NewReader(sealed))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKey, err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err == nil && string(content) != words {
		err = errors.New("it opens something else")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKey, err)
	}
	return nil
}

// StampWith is a stamp by a secret, "" without one.
func StampWith(secret []byte, plain string, content []byte) string {
	if len(secret) == 0 {
		return ""
	}
	sum := hmac.New(sha256.New, secret)
	sum.Write([]byte(plain + "\n"))
	sum.Write(content)
	return hex.EncodeToString(sum.Sum(nil))
}

// AgeIntro begins whatever is encrypted with age (age-encryption.org/v1).
const AgeIntro = "age-encryption.org/v1\n"
