// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/exhaustive"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/reflection"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

// writes are the requests that a removal sends. Its reads are answered from a few objects.
type writes struct {
	Deletes []client.DeleteOptions
	Patches []string
	there   []*unstructured.Unstructured
}

func (w *writes) client() client.Client {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			for _, o := range w.there {
				if client.ObjectKeyFromObject(o) == key && o.GroupVersionKind().GroupKind() == into.GetObjectKind().GroupVersionKind().GroupKind() {
					o.DeepCopyInto(into.(*unstructured.Unstructured)) //nolint:forcetypeassert // Everything here is unstructured.
					return nil
				}
			}
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		},
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
			options := client.DeleteOptions{}
			options.ApplyOptions(opts)
			w.Deletes = append(w.Deletes, options)
			return nil
		},
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
			data, err := patch.Data(obj)
			w.Patches = append(w.Patches, string(data))
			return err
		},
	})
}

// isExact reports whether every deletion is of the very object in the very state that was read.
func (w *writes) isExact() bool {
	return !slices.ContainsFunc(w.Deletes, func(o client.DeleteOptions) bool {
		return o.Preconditions == nil || *o.Preconditions.UID != "uid" || *o.Preconditions.ResourceVersion != "7"
	}) && !slices.ContainsFunc(w.Patches, func(p string) bool {
		return !strings.Contains(p, `"resourceVersion":"7"`) || !strings.Contains(p, `"uid":"uid"`)
	})
}

func (w *writes) none() bool { return len(w.Deletes)+len(w.Patches) == 0 }

const importUID = "import-uid" // That of anImport.

func object(gk schema.GroupKind, name string, labels map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(gk.WithVersion("v1"))
	o.SetNamespace("customers")
	o.SetName(name)
	o.SetUID("uid")
	o.SetResourceVersion("7")
	o.SetLabels(labels)
	return o
}

// setNested sets a field to one of its shapes; nil leaves it out.
func setNested(o *unstructured.Unstructured, value any, fields ...string) {
	if value != nil {
		_ = unstructured.SetNestedField(o.Object, value, fields...)
	}
}

// managedSituation is a managed resource that an import wants to remove.
type managedSituation struct {
	Kind                                   schema.GroupKind
	Policies, DeletionPolicy, InitProvider any
	Deleting, Observed                     bool
	Paused                                 string
	sent                                   *writes
	err                                    error
}

func managedSituations() iter.Seq[*managedSituation] {
	kinds := []schema.GroupKind{
		reflection.EKSCluster.Legacy(), reflection.EKSCluster.Namespaced(), reflection.EKSClusterAuth.Legacy(), reflection.EKSClusterAuth.Namespaced(),
	}
	policies := []any{
		nil, []any{}, []any{"*"}, []any{"Observe"}, []any{"Observe", "Delete"}, []any{"Delete"}, []any{"Observe", "LateInitialize"}, "Observe", []any{"Observe", int64(1)},
	}
	return func(yield func(*managedSituation) bool) {
		for _, kind := range kinds {
			for _, policies := range policies {
				for _, deletionPolicy := range []any{nil, "Orphan", "Delete", "", int64(1)} {
					for _, initial := range []any{nil, map[string]any{}, map[string]any{"version": "1.30"}, "version"} {
						for _, paused := range []string{"", "true", "false"} {
							for bits := range 4 {
								s := &managedSituation{
									Kind: kind, Policies: policies, DeletionPolicy: deletionPolicy, InitProvider: initial, Paused: paused,
									Deleting: bits&1 != 0, Observed: bits&2 != 0, sent: &writes{},
								}
								s.err = (&hubObjects{hub: s.sent.client()}).removeManaged(context.Background(), s.object())
								if !yield(s) {
									return
								}
							}
						}
					}
				}
			}
		}
	}
}

func (s *managedSituation) object() *unstructured.Unstructured {
	o := object(s.Kind, "prod", nil)
	setNested(o, s.Policies, "spec", "managementPolicies")
	setNested(o, s.DeletionPolicy, "spec", "deletionPolicy")
	setNested(o, s.InitProvider, "spec", "initProvider")
	if s.Paused != "" {
		annotate(o, reflection.ManagedPausedAnnotation, s.Paused)
	}
	if s.Observed {
		setNested(o, map[string]any{"arn": "x"}, "status", "atProvider")
	}
	if s.Deleting {
		o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	}
	return o
}

// TestRemoveManagedExhaustive checks that no customer's cluster is deleted with the resource that observes it.
func TestRemoveManagedExhaustive(t *testing.T) {
	isAuth := func(s *managedSituation) bool { return reflection.EKSClusterAuth.Is(s.Kind) }
	observes := func(s *managedSituation) bool {
		policies, ok := s.Policies.([]any)
		return ok && len(policies) == 1 && policies[0] == "Observe"
	}
	keeps := func(s *managedSituation) bool { return s.DeletionPolicy == nil || s.DeletionPolicy == "Orphan" }
	exhaustive.Check(t, managedSituations(), []exhaustive.Property[*managedSituation]{
		{
			Sentence: "Only what observes, and nothing else, is deleted or let be deleted.",
			When:     func(s *managedSituation) bool { return !isAuth(s) && (!observes(s) || !keeps(s)) },
			Holds:    func(s *managedSituation) bool { return s.sent.none() && s.err != nil },
		},
		{
			Sentence: "What could create something is not touched.",
			When: func(s *managedSituation) bool {
				initial, isMap := s.InitProvider.(map[string]any)
				return !isAuth(s) && s.InitProvider != nil && (!isMap || len(initial) > 0)
			},
			Holds: func(s *managedSituation) bool { return s.sent.none() && s.err != nil },
		},
		{
			Sentence: "What is removed is the very object that was read.",
			When:     func(s *managedSituation) bool { return !s.sent.none() },
			Holds:    func(s *managedSituation) bool { return s.sent.isExact() },
		},
		{
			Sentence: "It is unpaused only to end a deletion, and only if it was never observed.",
			When:     func(s *managedSituation) bool { return len(s.sent.Patches) > 0 },
			Holds:    func(s *managedSituation) bool { return s.Deleting && !s.Observed && s.Paused == "true" },
		},
		{
			Sentence: "What is being deleted is not deleted again.",
			When:     func(s *managedSituation) bool { return s.Deleting },
			Holds:    func(s *managedSituation) bool { return len(s.sent.Deletes) == 0 },
		},
		{
			Sentence: "What only observes is deleted.",
			When: func(s *managedSituation) bool {
				return observes(s) && keeps(s) && s.InitProvider == nil && !s.Deleting
			},
			Holds: func(s *managedSituation) bool { return len(s.sent.Deletes) == 1 && s.err == nil },
		},
	})
}

// reflectionSituation is an object of Cluster API with the label of an import, which the import no longer wants.
type reflectionSituation struct {
	Kind                           schema.GroupKind
	Name, Namespace                string
	Import                         string
	Nodes                          any
	Infrastructure, ControlPlane   string // What the references lead to.
	Deleting, Paused, MayBeRemoved bool
	sent                           *writes
	err                            error
	own                            bool
}

func (s *reflectionSituation) String() string {
	return fmt.Sprintf("%s %s/%s of %q nodes %v infrastructure %s control plane %s deleting %t paused %t: deletes %d patches %q: %v",
		s.Kind.Kind, s.Namespace, s.Name, s.Import, s.Nodes, s.Infrastructure, s.ControlPlane, s.Deleting, s.Paused, len(s.sent.Deletes), s.sent.Patches, s.err)
}

func reflectionSituations() iter.Seq[*reflectionSituation] {
	imp := anImport()
	kinds := map[string]schema.GroupKind{}
	for _, kind := range reflection.ReflectedKinds(ownership.WantedImport(imp).Cloud) {
		kinds[kind.Kind] = kind
	}
	references := []string{"None", "Own", "Missing", "Foreign", "OtherKind", "Malformed"}
	return func(yield func(*reflectionSituation) bool) {
		for _, kind := range kinds {
			for _, at := range []string{"customers/shop", "other/shop", "customers/copy"} {
				for _, by := range []string{importUID, "another", ""} {
					for _, nodes := range []any{nil, []any{}, []any{map[string]any{"name": "n"}}, "n"} {
						for _, infrastructure := range references {
							for _, controlPlane := range references {
								if len(ownership.Cascades(kind)) == 0 && (infrastructure != "None" || controlPlane != "None") {
									continue // It has no references.
								}
								for bits := range 8 {
									s := &reflectionSituation{
										Kind: kind, Import: by, Nodes: nodes, Infrastructure: infrastructure, ControlPlane: controlPlane,
										Deleting: bits&1 != 0, Paused: bits&2 != 0, MayBeRemoved: bits&4 != 0, sent: &writes{},
									}
									s.Namespace, s.Name, _ = strings.Cut(at, "/")
									s.run(imp)
									if !yield(s) {
										return
									}
								}
							}
						}
					}
				}
			}
		}
	}
}

// run removes the object as unimport does: if it is the import's.
func (s *reflectionSituation) run(imp *fleetv1alpha1.ClusterImport) {
	label := func(by string) map[string]string {
		return map[string]string{fleetv1alpha1.ImportUIDLabel: by, clusterv1.ClusterNameLabel: "shop"}
	}
	o := object(s.Kind, s.Name, label(s.Import))
	o.SetNamespace(s.Namespace)
	if s.Name == "copy" {
		o.SetLabels(map[string]string{fleetv1alpha1.ImportUIDLabel: s.Import, clusterv1.ClusterNameLabel: "copy"})
	}
	setNested(o, s.Nodes, "status", "nodeRefs")
	infra := schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "AWSManagedCluster"}
	for i, to := range []string{s.Infrastructure, s.ControlPlane} {
		if to == "None" || len(ownership.Cascades(s.Kind)) == 0 {
			continue
		}
		name := fmt.Sprintf("target-%d", i)
		ref := map[string]any{"apiGroup": infra.Group, "kind": infra.Kind, "name": name}
		switch to {
		case "Own":
			// The only name that the import gives to an object of this kind.
			ref["name"] = "shop"
			s.sent.there = append(s.sent.there, object(infra, "shop", label(importUID)))
		case "Foreign":
			there := object(infra, name, label("another"))
			there.SetNamespace(s.Namespace)
			s.sent.there = append(s.sent.there, there)
		case "OtherKind":
			ref["apiGroup"], ref["kind"] = "example.org", "Database"
		case "Malformed":
			setNested(o, "shop", ownership.Cascades(s.Kind)[i]...)
			continue
		}
		setNested(o, ref, ownership.Cascades(s.Kind)[i]...)
	}
	if s.Paused {
		annotate(o, clusterv1.PausedAnnotation, "true")
	}
	if s.MayBeRemoved {
		annotate(o, takeover.AllowUnimportAnnotation, importUID)
	}
	if s.Deleting {
		o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	}
	c := s.sent.client()
	gvk := infra.WithVersion("v1beta2")
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{gvk.GroupVersion()})
	mapper.Add(gvk, meta.RESTScopeNamespace)
	r := &Reconciler{hubObjects: &hubObjects{hub: c, live: c}, mapper: mapper, recorder: &events.FakeRecorder{}}
	p := newScope(imp)
	for _, own := range r.own(p, []unstructured.Unstructured{*o}) {
		s.own = true
		s.err = r.takeBack(context.Background(), p, &own)
	}
}

// TestTakeBackExhaustive checks that nothing of a customer's cluster, and nothing of others, is deleted with a
// reflection.
func TestTakeBackExhaustive(t *testing.T) {
	isCore := func(s *reflectionSituation) bool { return len(ownership.Cascades(s.Kind)) > 0 }
	refers := func(s *reflectionSituation, what ...string) bool {
		return isCore(s) && (slices.Contains(what, s.Infrastructure) || slices.Contains(what, s.ControlPlane))
	}
	removed := func(s *reflectionSituation) bool { return !s.sent.none() }
	exhaustive.Check(t, reflectionSituations(), []exhaustive.Property[*reflectionSituation]{
		{
			Sentence: "A copy of a reflection, and what another import made, is left alone.",
			When: func(s *reflectionSituation) bool {
				return s.Import != importUID || s.Namespace != "customers" || s.Name == "copy"
			},
			Holds: func(s *reflectionSituation) bool { return !s.own && !removed(s) },
		},
		{
			Sentence: "What refers to anything but objects of the import is not removed: Cluster API would delete that, too.",
			When:     func(s *reflectionSituation) bool { return refers(s, "Foreign", "OtherKind", "Malformed") },
			Holds:    func(s *reflectionSituation) bool { return !removed(s) },
		},
		{
			Sentence: "What names Nodes is not removed: Cluster API would delete them.",
			When: func(s *reflectionSituation) bool {
				nodes, isList := s.Nodes.([]any)
				return isCore(s) && s.Nodes != nil && (!isList || len(nodes) > 0)
			},
			Holds: func(s *reflectionSituation) bool { return !removed(s) },
		},
		{
			Sentence: "What is removed is the very object that was read.",
			When:     removed,
			Holds:    func(s *reflectionSituation) bool { return s.sent.isExact() },
		},
		{
			Sentence: "Only an object that is being deleted is unpaused.",
			When: func(s *reflectionSituation) bool {
				return slices.ContainsFunc(s.sent.Patches, func(p string) bool { return strings.Contains(p, clusterv1.PausedAnnotation) })
			},
			Holds: func(s *reflectionSituation) bool { return s.Deleting && isCore(s) && len(s.sent.Deletes) == 0 },
		},
		{
			Sentence: "What is the import's, and leads to nothing else, is removed.",
			When: func(s *reflectionSituation) bool {
				_, isText := s.Nodes.(string)
				nodes, _ := s.Nodes.([]any)
				return s.own && !s.Deleting && !refers(s, "Foreign", "OtherKind", "Malformed") && (!isCore(s) || !isText && len(nodes) == 0)
			},
			Holds: func(s *reflectionSituation) bool { return len(s.sent.Deletes) == 1 && s.err == nil },
		},
	})
}
