package bucket

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

// The protocol of a Volume. Names are in the path, of what is listed in the query.
//
//	PUT    /objects/NAME                     write; with If-None-Match: * only where none is
//	GET    /objects/NAME                     read
//	GET    /list?prefix=PREFIX&after=NAME    objects as lines of JSON, and a last line that says what is after them
//	POST   /delete                           a JSON list of names
const (
	pathObjects = "/objects/"
	pathList    = "/list"
	pathDelete  = "/delete"
	// headerSum is the SHA-256 of an object that is written (hexadecimal): without
	// it, or with another one, there will be no object.
	headerSum = "Content-Sha256"
	// maxNames bounds a list of names to delete (bytes): pageSize of the longest, escaped.
	maxNames = pageSize * maxName * 2
	// slowest is how long a request may take: the largest object at 100 kB/s.
	slowest = 11 * time.Minute
)

// statuses are what the errors are on the way from the server to the client.
var statuses = []struct {
	err    error
	status int
}{
	{ErrNotExist, http.StatusNotFound},
	{ErrExists, http.StatusPreconditionFailed},
	{ErrNoBucket, http.StatusGone},
	{ErrDenied, http.StatusForbidden},
	{ErrFull, http.StatusInsufficientStorage},
	{ErrInvalid, http.StatusBadRequest},
}

// line is one line of a listing: an object, or the last one.
type line struct {
	Object *Object `json:"object,omitempty"`
	Last   *last   `json:"last,omitempty"`
}

// last is the last line of a listing. A listing without it was cut off.
type last struct {
	// Next is the name to go on after; empty when there is nothing more.
	Next string `json:"next"`
}

// May says whether the holder of a certificate may read, or write, all objects
// whose names begin with prefix. The certificate has been verified.
type May func(client *x509.Certificate, prefix string, write bool) bool

// NewServer makes the server of a Volume. ServeTLS(listener, "", "") runs it.
func NewServer(folder *Folder, may May, config *tls.Config) *http.Server {
	s := server{folder, may}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT "+pathObjects+"{name...}", s.handlePut)
	mux.HandleFunc("GET "+pathObjects+"{name...}", s.handleGet)
	mux.HandleFunc("GET "+pathList, s.handleList)
	mux.HandleFunc("POST "+pathDelete, s.handleDelete)
	return &http.Server{
		Handler: mux, TLSConfig: config,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: slowest, WriteTimeout: slowest, IdleTimeout: 2 * time.Minute,
	}
}

// ServerTLS is the TLS side of a Volume's server: it takes clients with a
// certificate from one of the authorities. Both are asked for at each connection,
// so they may change.
func ServerTLS(certificate func() (tls.Certificate, error), authorities func() (*x509.CertPool, error)) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			own, err := certificate()
			if err != nil {
				return nil, err
			}
			pool, err := authorities()
			if err != nil {
				return nil, err
			}
			return &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, NextProtos: []string{"http/1.1"},
				ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
				SessionTicketsDisabled: true, // each connection is verified
			}, nil
		},
	}
}

type server struct {
	folder *Folder
	may    May
}

func (s server) allowed(r *http.Request, prefix string, write bool) error {
	client := r.TLS.PeerCertificates[0]
	if s.may(client, prefix, write) {
		return nil
	}
	verb := "read"
	if write {
		verb = "write"
	}
	return fmt.Errorf("%w: %q may not %s below %q", ErrDenied, client.Subject.CommonName, verb, prefix)
}

func (s server) handlePut(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	err := errors.Join(checkName(name), s.allowed(r, name, true))
	if err == nil && (r.ContentLength < 0 || r.ContentLength > MaxObject) {
		err = fmt.Errorf("%w: its length must be known, and at most %d bytes", ErrInvalid, MaxObject)
	}
	if err == nil {
		place := (*os.Root).Rename
		if r.Header.Get("If-None-Match") == "*" {
			place = (*os.Root).Link
		}
		err = s.folder.write(r.Context(), name, &summed{r.Body, sha256.New(), r.Header.Get(headerSum)}, place)
	}
	answer(w, err)
}

// summed ends with an error if what was read has another sum (hexadecimal SHA-256).
type summed struct {
	from io.Reader
	hash hash.Hash
	sum  string
}

func (s *summed) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.hash.Write(p[:n])
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && hex.EncodeToString(s.hash.Sum(nil)) != s.sum {
		return n, fmt.Errorf("what has arrived does not have the sum in %s", headerSum)
	}
	return n, err
}

func (s server) handleGet(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if err := s.allowed(r, name, false); err != nil {
		answer(w, err)
		return
	}
	file, size, err := s.folder.open(r.Context(), name)
	if err != nil {
		answer(w, fmt.Errorf("read %s: %w", name, err))
		return
	}
	defer file.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	if _, err := io.CopyN(w, file, size); err != nil {
		panic(http.ErrAbortHandler) // the client must not take it for complete
	}
}

func (s server) handleList(w http.ResponseWriter, r *http.Request) {
	prefix, after := r.FormValue("prefix"), r.FormValue("after")
	err := s.allowed(r, prefix, false)
	if err != nil {
		answer(w, err)
		return
	}
	objects, end, err := s.page(r.Context(), prefix, after)
	if err != nil {
		answer(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	encoder := json.NewEncoder(w)
	for i := range objects {
		_ = encoder.Encode(line{Object: &objects[i]}) // the client misses the last line
	}
	_ = encoder.Encode(line{Last: &end}) // the same
}

func (s server) page(ctx context.Context, prefix, after string) ([]Object, last, error) {
	var objects []Object
	for object, err := range s.folder.ListAfter(ctx, prefix, after) {
		if err != nil {
			return nil, last{}, err
		}
		if objects = append(objects, object); len(objects) == pageSize {
			return objects, last{Next: object.Name}, nil
		}
	}
	return objects, last{}, nil
}

func (s server) handleDelete(w http.ResponseWriter, r *http.Request) {
	var names []string
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxNames)).Decode(&names); err != nil {
		answer(w, fmt.Errorf("%w: understand the list of names: %w", ErrInvalid, err))
		return
	}
	for _, name := range names {
		if err := errors.Join(checkName(name), s.allowed(r, name, true)); err != nil {
			answer(w, err)
			return
		}
	}
	answer(w, s.folder.Delete(r.Context(), names...))
}

// answer says whether it went well.
func answer(w http.ResponseWriter, err error) {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	status := http.StatusInternalServerError
	for _, known := range statuses {
		if errors.Is(err, known.err) {
			status = known.status
			break
		}
	}
	http.Error(w, err.Error(), status)
}
