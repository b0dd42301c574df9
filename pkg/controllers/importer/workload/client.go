// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

const (
	// clusterTimeout bounds all queries to an imported cluster together, and answerTimeout the wait until an answer
	// begins.
	clusterTimeout = 30 * time.Second
	answerTimeout  = 10 * time.Second
	// maxReview and maxNodePage bound the answer to a review, and a page of Nodes, in bytes. limits.WithBytes also bounds
	// the memory of a decoded page.
	maxReview   = 256 << 10
	maxNodePage = 8 << 20
	// nodesPerPage and maxPages bound how many Nodes are read. A Node with its managed fields and images is a few dozen
	// kilobytes.
	nodesPerPage = 100
	maxPages     = 100
	// maxContinue is how long the name of the next page may be, in bytes. Kubernetes's have a few hundred.
	maxContinue = 8 << 10
	// maxNodeText bounds a label's value, and a kubelet's version, in bytes. Longer ones are left out: Kubernetes accepts
	// no such label, and there is no such version.
	maxNodeText = 63
)

// errRefused means that the cluster refuses the credentials. errUnreadable means that its answer is invalid, and
// errBroken that the answer is incomplete, or that there is no memory for it now.
var (
	errRefused    = errors.New("the credentials are refused")
	errUnreadable = errors.New("the API server's answer cannot be read")
	errBroken     = errors.New("the API server's answer is incomplete, or there is no memory for it now")
)

// Client queries an imported cluster. It can list Nodes, review rights, read when the cluster was created and request a
// token, and nothing else.
type Client struct {
	client *http.Client
	base   *http.Transport
	server string
	token  string
	// open opens an account for the memory that an answer takes; nil for none.
	open func(abort func(error)) limits.Charge
	// unauthenticated means that the cluster did not accept the credentials.
	unauthenticated bool
}

// NewClient makes a client from a kubeconfig, which is checked against what kubeconfigs may have.
func NewClient(kubeconfig []byte, o credentials.Options) (*Client, error) {
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
	return &Client{
		base: base, server: parsed.Host(), token: parsed.Token(),
		client: &http.Client{
			Transport: base, Timeout: clusterTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Close closes what connections there are.
func (w *Client) Close() { w.base.CloseIdleConnections() }

// StatusError is an unexpected response status.
type StatusError struct{ code int }

// Error implements error.
func (e *StatusError) Error() string {
	if e.Is(errRefused) {
		return errRefused.Error()
	}
	return fmt.Sprintf("the API server responds with the status %d", e.code)
}

// Is reports whether the cluster refuses the credentials.
func (e *StatusError) Is(target error) bool {
	return target == errRefused && (e.code == http.StatusUnauthorized || e.code == http.StatusForbidden)
}

// request sends a request and decodes the answer, reading at most so many bytes.
func (w *Client) request(ctx context.Context, method, path string, body, into any, most int64) error {
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
		return errors.New("cannot create a request")
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
		return &StatusError{resp.StatusCode}
	}
	answer := limits.NewBody(ctx, resp.Body, limits.NewScanner("answer", limits.WithBytes(most)), w.open, nil)
	defer func() { _ = answer.Close() }() // Which gives back the memory.
	text := &noted{Reader: answer}
	if err := json.NewDecoder(text).Decode(into); err != nil {
		return text.without(err)
	}
	return nil
}

// noted is an answer's body that records the error that ended it.
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
	return read, err //nolint:wrapcheck // The decoder's error is not reported.
}

// without returns why a body was not decoded, without the decoder's error: that has parts of the answer.
func (n *noted) without(err error) error {
	if refused, ok := errors.AsType[*limits.Error](n.ended); ok {
		return refused
	}
	if n.ended != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errBroken
	}
	return errUnreadable
}

// may reviews one right. That changes nothing: a review is not stored.
func (w *Client) may(ctx context.Context, verb, group, resource string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource},
		},
	}
	var answer authorizationv1.SelfSubjectAccessReview
	if err := w.request(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, &answer, maxReview); err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// access reports the credentials' rights.
func (w *Client) access(ctx context.Context) metav1.Condition {
	of := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: fleetv1alpha1.ConditionWorkloadAccess, Status: status, Reason: reason, Message: message}
	}
	failed := func(err error) metav1.Condition {
		if errors.Is(err, errRefused) {
			return of(metav1.ConditionFalse, fleetv1alpha1.ReasonAccessNone, "The cluster refuses the credentials")
		}
		return of(metav1.ConditionUnknown, fleetv1alpha1.ReasonAccessUnknown, "The cluster could not be queried: "+err.Error())
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
	return of(metav1.ConditionTrue, fleetv1alpha1.ReasonAccessReadOnly, "The credentials may read in the cluster, but not write")
}

// created is when the cluster was created: with its namespace kube-system. It is zero if that cannot be read.
func (w *Client) created(ctx context.Context) time.Time {
	var namespace struct {
		Metadata struct {
			CreationTimestamp metav1.Time `json:"creationTimestamp"`
		} `json:"metadata"`
	}
	if err := w.request(ctx, http.MethodGet, "/api/v1/namespaces/"+metav1.NamespaceSystem, nil, &namespace, maxReview); err != nil {
		return time.Time{}
	}
	return namespace.Metadata.CreationTimestamp.Time
}

// nodePage is the decoded part of a page of Nodes.
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

// nodes reads the needed parts of the Nodes: of the first nodesPerPage*maxPages, if there are more.
func (w *Client) nodes(ctx context.Context) ([]reflection.Node, error) {
	var all []reflection.Node
	next := ""
	for range maxPages {
		var got nodePage
		path := fmt.Sprintf("/api/v1/nodes?limit=%d&continue=%s", nodesPerPage, url.QueryEscape(next))
		if err := w.request(ctx, http.MethodGet, path, nil, &got, maxNodePage); err != nil {
			return nil, err
		}
		if len(got.Items) > nodesPerPage || len(got.Metadata.Continue) > maxContinue {
			return nil, errors.New("the API server's answer is not a page of Nodes: it is larger than requested")
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
