// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/bounded"
	"github.com/masthead-dev/masthead/pkg/budget"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

const (
	// clusterTimeout is how long an imported cluster is given for all questions together, and answerTimeout until an
	// answer begins.
	clusterTimeout = 30 * time.Second
	answerTimeout  = 10 * time.Second
	// maxReview and maxNodePage are how large the answer to a review, and a page of Nodes, may be, in bytes. What a page
	// may take once it is decoded is bounded, too, by bounded.WithBytes.
	maxReview   = 256 << 10
	maxNodePage = 8 << 20
	// nodesPerPage and maxPages bound how many Nodes are read. A Node with its managed fields and images is a few dozen
	// kilobytes.
	nodesPerPage = 100
	maxPages     = 100
	// maxContinue is how long the name of the next page may be, in bytes. Kubernetes's have a few hundred.
	maxContinue = 8 << 10
	// maxNodeText is how long a label's value, and the version of a kubelet, may be, in bytes. What is longer is left out:
	// Kubernetes accepts no such label, and there is no such version.
	maxNodeText = 63
)

// clusters is what imported clusters said of themselves, by import.
type clusters struct {
	clock  clock.Clock
	memory *accounts

	mu    sync.Mutex
	known map[types.NamespacedName]clusterAnswer
}

// clusterAnswer is what a cluster said.
type clusterAnswer struct {
	uid types.UID
	at  time.Time
	// who identifies the credentials with which it was asked.
	who        [sha256.Size]byte
	nodes      []reflection.Node
	nodesKnown bool
	access     metav1.Condition
	// unauthenticated means that the cluster does not know the credentials.
	unauthenticated bool
	// failures is how often in a row the cluster could not be asked.
	failures int
	// tooMuch means that there is no memory for the Nodes.
	tooMuch bool
	// memory is what is held for the Nodes.
	memory *holding
}

func newClusters(c clock.Clock, b *budget.Budget) *clusters {
	return &clusters{clock: c, memory: newAccounts(b), known: map[types.NamespacedName]clusterAnswer{}}
}

// last is the last answer of a cluster to the same import.
func (c *clusters) last(key types.NamespacedName, uid types.UID) clusterAnswer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.known[key]; a.uid == uid {
		return a
	}
	return clusterAnswer{uid: uid}
}

// remember keeps an answer, and returns what is kept of it: without the Nodes, where there is no memory for them.
func (c *clusters) remember(key types.NamespacedName, a clusterAnswer) clusterAnswer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.memory = c.known[key].memory; a.memory == nil {
		a.memory = c.memory.hold(key.Namespace, func(error) { c.dropNodes(key) })
	}
	if err := a.memory.Hold(sizeOf(a.nodes)); err != nil {
		a = a.withoutNodes()
	}
	c.known[key] = a
	return a
}

// dropNodes gives back the memory of the Nodes of an import: others need it.
func (c *clusters) dropNodes(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.known[key]; ok {
		c.known[key] = a.withoutNodes()
	}
}

func (a clusterAnswer) withoutNodes() clusterAnswer {
	_ = a.memory.Hold(0) // Less is always granted.
	a.nodes, a.nodesKnown, a.tooMuch = nil, false, true
	return a
}

// nodes are those of the cluster, if they were read.
func (c *clusters) nodes(key types.NamespacedName, uid types.UID) ([]reflection.Node, bool) {
	a := c.last(key, uid)
	return a.nodes, a.nodesKnown
}

func (c *clusters) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[key].memory.Close()
	delete(c.known, key)
}

// leftAloneFor is for how long who gave no answer so many times in a row is not asked again: twice as long each time.
func leftAloneFor(failures int) time.Duration { return min(resync, retry<<min(failures-1, 10)) }

// goodFor is how long an answer counts: one with the Nodes until the next resync, one without them until the next
// retry.
func (a clusterAnswer) goodFor() time.Duration {
	switch {
	case a.failures > 0:
		return leftAloneFor(a.failures)
	case a.nodesKnown || a.tooMuch:
		return resync
	default:
		return retry
	}
}

// access asks the imported cluster what the credentials may do, and which Nodes it has.
func (r *Reconciler) access(ctx context.Context, p *pass) error {
	if p.kubeconfigNow == nil && p.waits {
		return nil // A kubeconfig is on its way.
	}
	if p.kubeconfigNow == nil {
		p.set(noKubeconfigAccess())
		return nil
	}
	who := sha256.Sum256(p.kubeconfigNow)
	before := r.clusters.last(p.key(), p.imp.UID)
	now := r.clusters.clock.Now()
	if good := before.goodFor() - now.Sub(before.at); before.who == who && good > 0 {
		p.set(before.condition())
		p.requeueSoon(good)
		return nil
	}
	leave, ok := r.enter(p)
	if !ok {
		return nil
	}
	defer leave()
	answer, err := r.ask(ctx, p)
	if err != nil {
		return err
	}
	answer.uid, answer.at, answer.who = p.imp.UID, now, who
	if answer.access.Reason == fleetv1alpha1.ReasonAccessUnknown {
		answer.failures = before.failures + 1
		if !answer.nodesKnown {
			// A cluster that cannot be reached keeps the Nodes that it had.
			answer.nodes, answer.nodesKnown = before.nodes, before.nodesKnown
		}
	}
	answer = r.clusters.remember(p.key(), answer)
	p.set(answer.condition())
	p.requeueSoon(answer.goodFor())
	if answer.unauthenticated {
		r.refusedToken(p)
	}
	if answer.nodesKnown != before.nodesKnown {
		p.requeueSoon(time.Second) // The Nodes may show pools.
	}
	return nil
}

func noKubeconfigAccess() metav1.Condition {
	return metav1.Condition{
		Type: fleetv1alpha1.ConditionWorkloadAccess, Status: metav1.ConditionFalse, Reason: fleetv1alpha1.ReasonAccessNone,
		Message: "There is no kubeconfig",
	}
}

// condition is what users are told of an answer.
func (a clusterAnswer) condition() metav1.Condition {
	c := a.access
	if a.tooMuch {
		c.Message += "; its Nodes are not kept, because the imports of this namespace need more than their share of the manager's memory"
	}
	return c
}

// ask asks a cluster for the rights of the credentials and for its Nodes.
func (r *Reconciler) ask(ctx context.Context, p *pass) (clusterAnswer, error) {
	w, err := newWorkload(p.kubeconfigNow, r.creds)
	if err != nil {
		return clusterAnswer{}, err
	}
	defer w.close()
	w.open = func(abort func(error)) bounded.Account { return r.clusters.memory.hold(p.imp.Namespace, abort) }
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	answer := clusterAnswer{access: w.access(ctx)}
	answer.unauthenticated = w.unauthenticated
	if answer.access.Reason != fleetv1alpha1.ReasonAccessNone && answer.access.Reason != fleetv1alpha1.ReasonAccessUnknown {
		answer.nodes, err = w.nodes(ctx)
		answer.nodesKnown = err == nil
	}
	return answer, nil
}

// workload asks an imported cluster. It can list Nodes, ask for rights and ask for a token, and nothing else.
type workload struct {
	client *http.Client
	base   *http.Transport
	server string
	token  string
	// open opens an account for the memory that an answer takes; nil for none.
	open func(abort func(error)) bounded.Account
	// unauthenticated means that the cluster said that it does not know the credentials.
	unauthenticated bool
}

func newWorkload(kubeconfig []byte, o credentials.Options) (*workload, error) {
	parsed, err := credentials.Parse(kubeconfig, o)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	tlsConfig, err := rest.TLSConfigFor(parsed.RESTConfig())
	if err != nil {
		return nil, errors.New("cannot use the certificates of the kubeconfig")
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return errors.New("the address cannot be read")
		}
		return o.CheckAddress(at.Addr().Unmap())
	}}
	base := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: tlsConfig, TLSHandshakeTimeout: 5 * time.Second,
		ResponseHeaderTimeout:  answerTimeout,
		MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
	}
	return &workload{
		base: base, server: parsed.Host(), token: parsed.Token(),
		client: &http.Client{
			Transport: base, Timeout: clusterTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func (w *workload) close() { w.base.CloseIdleConnections() }

// errRefused means that the cluster refuses the credentials. errUnreadable means that what it says is no answer, and
// errBroken that not all of the answer came, or that there is no room for it now.
var (
	errRefused    = errors.New("the credentials are refused")
	errUnreadable = errors.New("the API server's answer cannot be read")
	errBroken     = errors.New("the API server's answer breaks off, or there is no memory for it now")
)

// statusError is an answer that is none of what was asked for.
type statusError struct{ code int }

// Error implements error.
func (e *statusError) Error() string {
	if e.Is(errRefused) {
		return errRefused.Error()
	}
	return fmt.Sprintf("the API server answers with the status %d", e.code)
}

// Is says whether the cluster refuses the credentials.
func (e *statusError) Is(target error) bool {
	return target == errRefused && (e.code == http.StatusUnauthorized || e.code == http.StatusForbidden)
}

// ask sends a request and decodes the answer, of which so many bytes are read at most.
func (w *workload) ask(ctx context.Context, method, path string, body, into any, most int64) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("cannot encode a request: %w", err)
		}
		content = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, w.server+path, content)
	if err != nil {
		return errors.New("cannot make a request")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", fleetv1alpha1.ImportFieldManager)
	if w.token != "" {
		req.Header.Set("Authorization", "Bearer "+w.token)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return errors.New("the API server cannot be reached")
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		w.unauthenticated = w.unauthenticated || resp.StatusCode == http.StatusUnauthorized
		return &statusError{resp.StatusCode}
	}
	answer := bounded.NewBody(ctx, resp.Body, bounded.NewScanner("answer", bounded.WithBytes(most)), w.open, nil)
	defer func() { _ = answer.Close() }() // Which gives back the memory.
	text := &noted{Reader: answer}
	if err := json.NewDecoder(text).Decode(into); err != nil {
		return text.without(err)
	}
	return nil
}

// noted is the body of an answer, and notes the error that ended it.
type noted struct {
	io.Reader

	ended error
}

// Read implements io.Reader.
func (n *noted) Read(p []byte) (int, error) {
	read, err := n.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.ended = err
	}
	return read, err //nolint:wrapcheck // The decoder's error is told nobody.
}

// without says why a body was not decoded. What the decoder says is not repeated: it has parts of the answer.
func (n *noted) without(err error) error {
	if refused, ok := errors.AsType[*bounded.Error](n.ended); ok {
		return refused
	}
	if n.ended != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errBroken
	}
	return errUnreadable
}

// may asks for one right. Asking changes nothing: a review is not kept.
func (w *workload) may(ctx context.Context, verb, group, resource string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource},
		},
	}
	var answer authorizationv1.SelfSubjectAccessReview
	if err := w.ask(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, &answer, maxReview); err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// access says what the credentials may do.
func (w *workload) access(ctx context.Context) metav1.Condition {
	of := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: fleetv1alpha1.ConditionWorkloadAccess, Status: status, Reason: reason, Message: message}
	}
	failed := func(err error) metav1.Condition {
		if errors.Is(err, errRefused) {
			return of(metav1.ConditionFalse, fleetv1alpha1.ReasonAccessNone, "The cluster refuses the credentials")
		}
		return of(metav1.ConditionUnknown, fleetv1alpha1.ReasonAccessUnknown, "The cluster could not be asked: "+err.Error())
	}
	all, err := w.may(ctx, "*", "*", "*")
	if err != nil {
		return failed(err)
	}
	if all {
		return of(metav1.ConditionTrue, fleetv1alpha1.ReasonAccessAdmin, "The credentials may do everything in the cluster")
	}
	for _, right := range [][3]string{
		{"patch", "", "nodes"}, {"delete", "", "nodes"}, {"create", "", "pods"}, {"create", "apps", "deployments"}, {"create", "", "secrets"},
		{"create", "rbac.authorization.k8s.io", "clusterrolebindings"}, {"create", "apiextensions.k8s.io", "customresourcedefinitions"},
	} {
		may, err := w.may(ctx, right[0], right[1], right[2])
		if err != nil {
			return failed(err)
		}
		if may {
			return of(metav1.ConditionTrue, fleetv1alpha1.ReasonAccessWrite, "The credentials may "+right[0]+" "+right[2]+" in the cluster")
		}
	}
	read, err := w.may(ctx, "list", "", "nodes")
	if err != nil {
		return failed(err)
	}
	if !read {
		return of(metav1.ConditionFalse, fleetv1alpha1.ReasonAccessNone, "The credentials may not list the Nodes of the cluster")
	}
	return of(metav1.ConditionTrue, fleetv1alpha1.ReasonAccessReadOnly, "The credentials may read in the cluster, and not write")
}

// nodePage is what is decoded of a page of Nodes.
type nodePage struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []nodeItem `json:"items"`
}

type nodeItem struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Status struct {
		NodeInfo struct {
			KubeletVersion string `json:"kubeletVersion"`
		} `json:"nodeInfo"`
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// node is what is kept of a Node. It shares no memory with the answer.
func (i nodeItem) node() reflection.Node {
	node := reflection.Node{Labels: map[string]string{}}
	if version := i.Status.NodeInfo.KubeletVersion; len(version) <= maxNodeText {
		node.KubeletVersion = strings.Clone(version)
	}
	for _, key := range reflection.NodeLabels() {
		if value, ok := i.Metadata.Labels[key]; ok && len(value) <= maxNodeText {
			node.Labels[key] = strings.Clone(value)
		}
	}
	for _, c := range i.Status.Conditions {
		node.Ready = node.Ready || c.Type == "Ready" && c.Status == "True"
	}
	return node
}

// nodes reads what is needed of the Nodes: of the first nodesPerPage*maxPages, if there are more.
func (w *workload) nodes(ctx context.Context) ([]reflection.Node, error) {
	var all []reflection.Node
	next := ""
	for range maxPages {
		var got nodePage
		path := fmt.Sprintf("/api/v1/nodes?limit=%d&continue=%s", nodesPerPage, url.QueryEscape(next))
		if err := w.ask(ctx, http.MethodGet, path, nil, &got, maxNodePage); err != nil {
			return nil, err
		}
		if len(got.Items) > nodesPerPage || len(got.Metadata.Continue) > maxContinue {
			return nil, errors.New("the API server's answer is not a page of Nodes: it is larger than was asked for")
		}
		for _, item := range got.Items {
			all = append(all, item.node())
		}
		if next = got.Metadata.Continue; next == "" {
			return all, nil
		}
	}
	return all, nil
}
