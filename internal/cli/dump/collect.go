// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/cli/terminal"
	"github.com/masthead-dev/masthead/pkg/crossplane"
)

const (
	// maxLog is the maximum size that is read of one container's log.
	maxLog = 16 << 20

	// maxMetrics is the maximum size that is read of the manager's metrics.
	maxMetrics = 256 << 20
)

// readme is the file in a dump that says what the others are.
//
//go:embed README.txt
var readme []byte //nolint:gochecknoglobals // Embedding needs a variable. It is never written.

// Source is a dump's view of the hub. Of Secrets it returns metadata.
type Source interface {
	Mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error)
	Get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error)
	List(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]*unstructured.Unstructured, error)
	Log(ctx context.Context, pod client.ObjectKey, o corev1.PodLogOptions) (io.ReadCloser, error)
}

// Options configure a dump.
type Options struct {
	// Tail is the number of lines read from the end of each log. Zero leaves logs out.
	Tail int64

	// Metrics opens the manager's metrics.
	Metrics func(context.Context) (io.ReadCloser, error)

	// Head goes into the index: versions, the fleet as the hub says, and the time.
	Head Head
}

// Head is known before anything is collected.
type Head struct {
	Time          time.Time       `json:"time"`
	PluginVersion string          `json:"pluginVersion"`
	HubVersion    string          `json:"hubVersion,omitempty"`
	Clusters      []fleet.Cluster `json:"clusters"`
}

// Index lists what is in a dump, and what is missing.
type Index struct {
	Head `json:",inline"`

	// Objects are the numbers of objects of each kind.
	Objects map[string]int `json:"objects"`

	// NotLookedAt says what is missing, and why.
	NotLookedAt []Missing `json:"notLookedAt"`
}

// Missing is something that could not be read.
type Missing struct {
	What    string `json:"what"`
	Message string `json:"message"`
}

// Collect writes a dump. An error means that the archive is incomplete; unreadable objects are no error.
func Collect(ctx context.Context, from Source, to Archive, o Options) (Index, error) {
	c := &collector{from: from, to: to, index: Index{Head: o.Head, Objects: map[string]int{}, NotLookedAt: []Missing{}}}
	if err := to.Add("README.txt", readme); err != nil {
		return c.index, err
	}
	for _, step := range []func(context.Context) error{
		c.kinds, c.definitions, c.claims, c.events,
		func(ctx context.Context) error { return c.logs(ctx, o.Tail) },
		func(ctx context.Context) error { return c.metrics(ctx, o.Metrics) },
	} {
		if err := step(ctx); err != nil {
			return c.index, err
		}
		if err := ctx.Err(); err != nil {
			return c.index, err
		}
	}
	for i := range c.index.Clusters {
		c.index.Clusters[i].Message = Redact(c.index.Clusters[i].Message)
	}
	for i := range c.index.NotLookedAt {
		c.index.NotLookedAt[i].Message = Redact(c.index.NotLookedAt[i].Message)
	}
	return c.index, c.write("index.yaml", c.index)
}

// collector is a dump in progress.
type collector struct {
	from  Source
	to    Archive
	index Index

	xrds, pods []*unstructured.Unstructured
}

func (c *collector) write(name string, value any) error {
	var b bytes.Buffer
	if err := terminal.WriteYAML(&b, value); err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	return c.to.Add(name, b.Bytes())
}

func (c *collector) miss(what string, err error) {
	c.index.NotLookedAt = append(c.index.NotLookedAt, Missing{What: what, Message: fleet.Explain(err)})
}

// kinds collects the objects of all predefined kinds.
func (c *collector) kinds(ctx context.Context) error {
	for _, w := range collected() {
		list, err := c.objects(ctx, "objects", w)
		if err != nil {
			return err
		}
		switch w.kind {
		case crossplane.XRDKind.GroupKind():
			c.xrds = list
		case corev1.SchemeGroupVersion.WithKind("Pod").GroupKind():
			c.pods = list
		}
	}
	return nil
}

// objects writes the objects of one kind, and returns them unmodified.
func (c *collector) objects(ctx context.Context, folder string, w what) ([]*unstructured.Unstructured, error) {
	mapping, err := c.from.Mapping(w.kind.WithVersion(""))
	if err != nil {
		if !w.optional || !errors.Is(err, fleet.ErrNoSuchKind) {
			c.miss(w.kind.String(), err)
		}
		return nil, nil
	}
	resource := mapping.Resource.GroupResource().String()
	list, err := c.from.List(ctx, mapping.GroupVersionKind, w.options...)
	if err != nil {
		c.miss(resource, err)
		return nil, nil
	}
	list = slices.DeleteFunc(list, func(u *unstructured.Unstructured) bool { return w.want != nil && !w.want(u) })
	c.index.Objects[resource] = len(list)
	if len(list) == 0 {
		return nil, nil
	}
	return list, c.write(folder+"/"+fileName(resource)+".yaml", kept(list, w.keep))
}

// items are objects in a file, in the form that kubectl reads.
type items struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Items      []map[string]any `json:"items"`
}

func kept(list []*unstructured.Unstructured, keep shape) items {
	out := items{APIVersion: "v1", Kind: "List", Items: make([]map[string]any, 0, len(list))}
	for _, u := range list {
		out.Items = append(out.Items, finish(keep(u)))
	}
	return out
}

// definitions collects the CustomResourceDefinitions that the manager needs, without their schemas.
func (c *collector) definitions(ctx context.Context) error {
	var list []*unstructured.Unstructured
	for _, name := range definitions() {
		u, err := c.from.Get(ctx, crossplane.CRDGVK, client.ObjectKey{Name: name})
		if err != nil {
			c.miss("customresourcedefinition "+name, err)
			continue
		}
		versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
		for _, v := range versions {
			if version, ok := v.(map[string]any); ok {
				delete(version, "schema")
			}
		}
		if len(versions) > 0 {
			_ = unstructured.SetNestedSlice(u.Object, versions, "spec", "versions")
		}
		list = append(list, u)
	}
	return c.write("objects/customresourcedefinitions.yaml", kept(list, keeping("spec.versions", "spec.scope", "status")))
}

// claims collects the objects of the hub that came from workload clusters.
func (c *collector) claims(ctx context.Context) error {
	done := map[schema.GroupKind]bool{}
	for _, xrd := range c.xrds {
		publication, ok := crossplane.ParsePublication(xrd)
		kind := publication.Kind.GroupKind()
		if !ok || done[kind] {
			continue
		}
		done[kind] = true
		if _, err := c.objects(ctx, "claims", what{kind: kind, keep: claim(), want: carried}); err != nil {
			return err
		}
	}
	return nil
}

// reporters are the reporting controllers in Masthead's events.
func reporters() []string {
	return []string{"masthead", "agent", "agent-definitions", "discovery", "application", "references", "clusterimport"}
}

// events collects the events of Masthead's controllers, and those about its Pods, by time.
func (c *collector) events(ctx context.Context) error {
	about := func(u *unstructured.Unstructured) bool {
		reporter, _, _ := unstructured.NestedString(u.Object, "reportingController")
		if slices.Contains(reporters(), reporter) {
			return true
		}
		name, _, _ := unstructured.NestedString(u.Object, "regarding", "name")
		return slices.ContainsFunc(c.pods, func(p *unstructured.Unstructured) bool {
			return p.GetNamespace() == u.GetNamespace() && p.GetName() == name
		})
	}
	_, err := c.objects(ctx, ".", what{kind: schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}, want: about, keep: keeping(
		"regarding", "related", "reason", "note", "type", "action", "eventTime", "series", "reportingController", "reportingInstance",
		"deprecatedCount", "deprecatedFirstTimestamp", "deprecatedLastTimestamp")})
	return err
}

// logs collects the logs of the manager's Pods, including those of a container before its last restart.
func (c *collector) logs(ctx context.Context, tail int64) error {
	if tail <= 0 {
		return nil
	}
	slices.SortFunc(c.pods, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	for _, p := range c.pods {
		for _, status := range statuses(p) {
			name, _ := status["name"].(string)
			o := corev1.PodLogOptions{Container: name, TailLines: &tail, Timestamps: true}
			if err := c.log(ctx, client.ObjectKeyFromObject(p), o); err != nil {
				return err
			}
			if restarts, _ := status["restartCount"].(int64); restarts == 0 {
				continue
			}
			o.Previous = true
			if err := c.log(ctx, client.ObjectKeyFromObject(p), o); err != nil {
				return err
			}
		}
	}
	return nil
}

// statuses returns those of the containers of a Pod. A container without one has no log.
func statuses(p *unstructured.Unstructured) []map[string]any {
	var out []map[string]any
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		list, _, _ := unstructured.NestedSlice(p.Object, "status", field)
		for _, item := range list {
			if status, ok := item.(map[string]any); ok {
				out = append(out, status)
			}
		}
	}
	return out
}

func (c *collector) log(ctx context.Context, pod client.ObjectKey, o corev1.PodLogOptions) error {
	name := o.Container
	if o.Previous {
		name += ".previous"
	}
	content, err := readLog(ctx, c.from, pod, o)
	if err != nil {
		c.miss(fmt.Sprintf("log of %s %s", pod, name), err)
		return nil
	}
	return c.to.Add(fmt.Sprintf("logs/%s/%s/%s.log", fileName(pod.Namespace), fileName(pod.Name), fileName(name)), content)
}

func readLog(ctx context.Context, from Source, pod client.ObjectKey, o corev1.PodLogOptions) ([]byte, error) {
	data, err := readAll(func() (io.ReadCloser, error) { return from.Log(ctx, pod, o) }, maxLog)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(Redact(string(data)), "\n")
	for i := range lines {
		lines[i] = terminal.Clean(lines[i])
	}
	return []byte(strings.Join(lines, "\n")), nil
}

// metrics collects the manager's metrics.
func (c *collector) metrics(ctx context.Context, open func(context.Context) (io.ReadCloser, error)) error {
	data, err := readAll(func() (io.ReadCloser, error) { return open(ctx) }, maxMetrics)
	if err != nil {
		c.miss("metrics", err)
		return nil
	}
	return c.to.Add("metrics.txt", data)
}

func readAll(open func() (io.ReadCloser, error), limit int64) ([]byte, error) {
	stream, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	return io.ReadAll(io.LimitReader(stream, limit))
}
