// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"mime"
	"net/http"
	"strings"

	"github.com/masthead-dev/masthead/pkg/bounded"
)

// Limits are how much of an API server's answers is read, see package bounded. Numbers that are zero take their
// default.
type Limits struct {
	// Object is for whatever is neither a list nor a watch: objects, discovery. Default: 8 MiB.
	Object bounded.Limits
	// List is for one answer to a GET of a collection, which is a page where lists are long. Default: 16 MiB.
	List bounded.Limits
	// Event is for one event of a watch. A watch as a whole has none: it is meant to go on. Default: 8 MiB.
	Event bounded.Limits
	// Failure is for an answer that says that something failed. Default: 256 KiB.
	Failure bounded.Limits
	// Events is the pace of all watches of a cluster: of their events, bookmarks and the objects of lists that are streams
	// included. See DefaultEventPace.
	Events Pace
	// Answers is the pace of all other answers that the clients of a cluster get. What is not a list waits only for what
	// is over 64 KiB, and probes are not held up. See DefaultAnswerPace.
	Answers Pace
}

// Pace is how many things are read of a cluster: events, or answers. Every 8 KiB of them count as one more. Who sends
// more has to wait. Numbers that are zero take their default.
type Pace struct {
	// PerSecond is how many are read in a second, and Burst how many at once.
	PerSecond, Burst int
	// SustainedPerSecond is how many are read in a second in the long run, after SustainedBurst. It is lower, because
	// nothing but a large cluster that is listed has so much to say, and that ends.
	SustainedPerSecond, SustainedBurst int
	// SharedPerSecond is how many are read in a second of all busy clusters together: those that have sent half of Burst
	// on top of LeastPerSecond. Each of them has an equal share of it, and LeastPerSecond however many they are.
	SharedPerSecond, LeastPerSecond int
}

// DefaultEventPace is the pace of watches. An honest cluster of 50,000 objects is listed at this pace in 25 seconds.
func DefaultEventPace() Pace {
	return Pace{
		PerSecond: 2_000, Burst: 5_000, SustainedPerSecond: 500, SustainedBurst: 100_000, SharedPerSecond: 2_000, LeastPerSecond: 100,
	}
}

// DefaultAnswerPace is the pace of answers: 40 MiB at once, and 8 MiB a second. A claim costs three of them.
func DefaultAnswerPace() Pace {
	return Pace{
		PerSecond: 1_000, Burst: 5_000, SustainedPerSecond: 500, SustainedBurst: 50_000, SharedPerSecond: 1_000, LeastPerSecond: 50,
	}
}

func (p Pace) or(defaults Pace) Pace {
	for _, n := range []struct {
		is       *int
		standard int
	}{
		{&p.PerSecond, defaults.PerSecond},
		{&p.Burst, defaults.Burst},
		{&p.SustainedPerSecond, defaults.SustainedPerSecond},
		{&p.SustainedBurst, defaults.SustainedBurst},
		{&p.SharedPerSecond, defaults.SharedPerSecond},
		{&p.LeastPerSecond, defaults.LeastPerSecond},
	} {
		if *n.is <= 0 {
			*n.is = n.standard
		}
	}
	return p
}

// Default limits of bytes. Other limits are bounded's own.
const (
	DefaultObjectLimit  = 8 << 20
	DefaultListLimit    = 16 << 20
	DefaultEventLimit   = 8 << 20
	DefaultFailureLimit = 256 << 10

	// maxText is how much is read of an answer in plain text, which nobody decodes.
	maxText = 64 << 10
)

func (l Limits) withDefaults() Limits {
	l.Object = l.Object.Or(bounded.WithBytes(DefaultObjectLimit))
	l.List = l.List.Or(bounded.WithBytes(DefaultListLimit))
	l.Event = l.Event.Or(bounded.WithBytes(DefaultEventLimit))
	l.Failure = l.Failure.Or(bounded.WithBytes(DefaultFailureLimit))
	l.Events, l.Answers = l.Events.or(DefaultEventPace()), l.Answers.or(DefaultAnswerPace())
	return l
}

// onlyJSON narrows the header Accept of a request to JSON, which is scanned before it is decoded. Clients of client-go
// would rather have protobuf or CBOR, and understand YAML, whose aliases amplify most of all.
func onlyJSON(h http.Header) {
	var kept []string
	for _, v := range h.Values("Accept") {
		for part := range strings.SplitSeq(v, ",") {
			if mediaType, _, err := mime.ParseMediaType(part); err == nil && mediaType == mediaTypeJSON {
				kept = append(kept, strings.TrimSpace(part))
			}
		}
	}
	if len(kept) == 0 {
		kept = []string{mediaTypeJSON}
	}
	h.Set("Accept", strings.Join(kept, ","))
}

const mediaTypeJSON = "application/json"

// boundAnswer has the body of an answer end with an error where it exceeds a limit, or refuses the answer at once for
// what its header says. pathPrefix is the path of the API server's address. open opens the account of the answer.
// refused is told of every refusal.
func boundAnswer(
	resp *http.Response, req *http.Request, pathPrefix string, l Limits, open func(abort func(error)) bounded.Account, refused func(error),
) error {
	err := bound(resp, req, pathPrefix, l, open, refused)
	if err != nil {
		_ = resp.Body.Close()
		refused(err)
	}
	return err
}

func bound(
	resp *http.Response, req *http.Request, pathPrefix string, l Limits, open func(abort func(error)) bounded.Account, refused func(error),
) error {
	subject, limits := limitsOf(resp, req, pathPrefix, l)
	failed := resp.StatusCode < 200 || resp.StatusCode >= 300
	switch encoding := resp.Header.Get("Content-Encoding"); {
	case resp.StatusCode < 200 || resp.StatusCode >= 300 && resp.StatusCode < 400:
		return &bounded.Error{Subject: subject, Limit: bounded.LimitRedirect}
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return &bounded.Error{Subject: subject, Limit: bounded.LimitEncoding}
	case resp.ContentLength > limits.Bytes:
		return &bounded.Error{Subject: subject, Limit: bounded.LimitBytes, Max: limits.Bytes}
	}
	contentType := resp.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(contentType)
	switch {
	case contentType == "":
		// client-go would take it for what it sent itself, which can be protobuf.
		resp.Header.Set("Content-Type", mediaTypeJSON)
	case err == nil && mediaType == mediaTypeJSON:
	case err == nil && mediaType == "text/plain":
		// What /readyz says, and many errors. No decoder takes it.
		resp.Body = bounded.Text(resp.Body, maxText)
		return nil
	case failed:
		// Of what a proxy in front of the API server says, the status is enough.
		resp.Header.Set("Content-Type", "text/plain")
		resp.Body = bounded.Text(resp.Body, 0)
		resp.ContentLength = -1
		return nil
	default:
		return &bounded.Error{Subject: subject, Limit: bounded.LimitContentType}
	}
	scanner := bounded.NewScanner(subject, limits)
	if subject == subjectEvent {
		scanner = bounded.NewStreamScanner(subject, limits)
	}
	resp.Body = bounded.NewBody(req.Context(), resp.Body, scanner, open, refused)
	return nil
}

// Subjects of refusals.
const (
	subjectAnswer = "answer"
	subjectList   = "list"
	subjectEvent  = "event"
)

// limitsOf says what an answer is, and which limits it has.
func limitsOf(resp *http.Response, req *http.Request, pathPrefix string, l Limits) (string, bounded.Limits) {
	switch {
	case resp.StatusCode >= 300:
		return subjectAnswer, l.Failure
	case isWatch(req):
		return subjectEvent, l.Event
	case isList(req, pathPrefix):
		return subjectList, l.List
	default:
		return subjectAnswer, l.Object
	}
}

// isList is whether a request asks for all objects of a kind.
func isList(req *http.Request, pathPrefix string) bool {
	return req.Method == http.MethodGet && isCollection(strings.TrimPrefix(req.URL.Path, strings.TrimSuffix(pathPrefix, "/")))
}

// isCollection says whether a path of an API server names all objects of a kind, in one namespace or in all, and not
// one object, or discovery:
//
//	/api/v1/<resource>[/<name>[/<subresource>]]
//	/apis/<group>/<version>/<resource>[/<name>[/<subresource>]]
//
// with namespaces/<namespace>/ before the resource or not. A subresource of a Namespace looks like a collection, and
// has its limit.
func isCollection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return len(parts) == 1
}
