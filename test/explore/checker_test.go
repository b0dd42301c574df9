// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/test/explore/apiserver"
	owned "github.com/masthead-dev/masthead/test/ownership"
)

// checker follows every change and records which properties it breaks.
type checker struct {
	w *world

	mu         sync.Mutex
	violations []string

	claims map[types.UID]*claimHistory
	// objects are the hub's claims, by UID.
	objects map[types.UID]*objectHistory

	// orphans is whether the class keeps the objects of deleted claims, disables whether its mode is Disabled.
	orphans, disables bool
	// targets are the namespaces of the hub to which each namespace of a cluster has led so far.
	targets map[string]map[string]bool
	// withdrawn is whether the claim kind was ever not published.
	withdrawn bool
	// foreign is since when an object is not, or not only, Masthead's, by its cluster and key.
	foreign map[string]time.Time
	// reduced is whether the hub ever had less to show, or withheld some of it. modes are how much the class has shown.
	reduced bool
	modes   map[fleetv1alpha1.DiscoveryMode]bool
	// ownCrossplanes are the clusters that are to be left alone from now on.
	ownCrossplanes map[*workload]bool
	// landing is when the request was given up that is executed now; zero if its sender waits.
	landing time.Time
	// unresolved is whether no references are to be resolved from now on.
	unresolved bool
	// values are those that the source of a reference has had, and permitted is until when a namespace permitted another.
	values    map[string]map[string]bool
	permitted map[string]time.Time
	// names is the history of the names of the hub.
	names owned.History
}

// claimHistory is what happened to a claim in a workload cluster.
type claimHistory struct {
	cluster         *workload
	made            time.Time
	namespace       string
	namespaceUID    types.UID
	last            *unstructured.Unstructured
	gone            bool
	keptWhenDeleted bool
	// orphaned means that the class may have kept the objects of deleted claims, disabled that it may have been Disabled,
	// while the claim existed.
	orphaned, disabled bool

	// justProtected means that the last change was Masthead's finalizer.
	justProtected bool
	// consentsToMove means that the namespace's owner has ever consented to moving objects.
	consentsToMove bool

	// slipped means that its deletion did not wait for its finalizer. witnesses are the processes that run since then and
	// watched it, or will be shown it.
	slipped   bool
	witnesses map[string]bool
	// lost means that a backup was restored that does not have the claim.
	lost bool
	// restored means that it is back from a later backup, with another UID.
	restored bool

	// tampered means that a user removed Masthead's finalizer, or changed its record.
	tampered bool
	// recorded means that the claim has shown its object: by the record of its UID, or by Crossplane's conditions.
	recorded bool
	// consents are what the user has written into the claim to consent to the loss of an object.
	consents map[string]bool

	// objects were created for the claim by Masthead.
	objects []*objectHistory
}

// objectHistory is what happened to a claim in the hub.
type objectHistory struct {
	last *unstructured.Unstructured
	gone bool
	// sources are those that it has named.
	sources map[string]bool
	// byMasthead means that Masthead created it, deletedBy is who deleted it.
	byMasthead bool
	deletedBy  string
	deletedAt  time.Time
}

func newChecker(w *world) *checker {
	return &checker{
		w: w, claims: map[types.UID]*claimHistory{}, objects: map[types.UID]*objectHistory{}, names: owned.History{Live: true},
		targets: map[string]map[string]bool{}, foreign: map[string]time.Time{}, values: map[string]map[string]bool{}, permitted: map[string]time.Time{},
		modes: map[fleetv1alpha1.DiscoveryMode]bool{}, ownCrossplanes: map[*workload]bool{},
	}
}

func (c *checker) fail(property, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violations = append(c.violations, property+": "+fmt.Sprintf(format, args...))
}

// isAgent reports whether a change is Masthead's. It writes as its field managers, and deletes as its process.
func isAgent(change apiserver.Change) bool {
	return strings.HasPrefix(change.Manager, fleetv1alpha1.FieldManager) || strings.HasPrefix(change.Manager, "manager-")
}

func (c *checker) hubChanged(change apiserver.Change) {
	if isAgent(change) && slices.Contains([]schema.GroupResource{crds, xrds, compositions}, change.Key.GroupResource) {
		c.fail("What is shown stays as it is in the hub", "%s wrote %s", change.Manager, change.Key)
	}
	c.offerChanged(change)
	switch change.Key.GroupResource {
	case classes:
		policy, _, _ := unstructured.NestedString(change.New.Object, "spec", "agent", "deletionPolicy")
		mode, _, _ := unstructured.NestedString(change.New.Object, "spec", "agent", "mode")
		c.orphans, c.disables = policy == "Orphan", mode == "Disabled"
		for _, claim := range c.claims {
			claim.orphaned, claim.disabled = claim.orphaned || c.orphans, claim.disabled || c.disables
			claim.keptWhenDeleted = claim.keptWhenDeleted && (c.orphans || keepsObject(claim.last))
		}
	case xrds:
		c.withdrawn = c.withdrawn || change.New.GetLabels()[fleetv1alpha1.PublishLabel] == "false"
	case claims:
		c.objectChanged(change)
	}
}

// otherHubChanged checks the hub that has enrolled the clusters of another.
func (c *checker) otherHubChanged(change apiserver.Change) {
	if change.Key.GroupResource == claims && isAgent(change) {
		c.fail("A cluster belongs to one hub", "%s wrote %s", change.Manager, change.Key)
	}
}

func (c *checker) objectChanged(change apiserver.Change) {
	if before, after := nameOwner(change.Old), nameOwner(change.New); before != after {
		c.names.Changed(change.Key.Namespace, after)
	}
	if change.New != nil {
		defer func() { c.objects[change.New.GetUID()].sources[formatSource(change.New)] = true }()
	}
	switch {
	case change.Old == nil:
		o := &objectHistory{last: change.New, sources: map[string]bool{}, byMasthead: isAgent(change)}
		c.objects[change.New.GetUID()] = o
		if o.byMasthead {
			c.objectCreated(o)
		}
	case change.New == nil || change.New.GetDeletionTimestamp() != nil && change.Old.GetDeletionTimestamp() == nil:
		o := c.objects[change.Old.GetUID()]
		if change.Old.GetDeletionTimestamp() == nil {
			o.deletedBy, o.deletedAt = change.Manager, time.Now()
			if isAgent(change) {
				c.objectDeleted(o)
			}
		}
		o.gone = change.New == nil
		if change.New != nil {
			o.last = change.New
		}
	default:
		o := c.objects[change.Old.GetUID()]
		if isAgent(change) {
			c.objectWritten(o, change)
		}
		o.last = change.New
	}
}

// source is what a claim's object in the hub names.
func (claim *claimHistory) source() string { return claim.cluster.identifier + "/" + claim.namespace }

// owns reports whether an object names the source of a claim.
func (claim *claimHistory) owns(o *objectHistory) bool { return formatSource(o.last) == claim.source() }

// nameOwner returns the owner of the name of an object.
func nameOwner(obj *unstructured.Unstructured) string {
	switch {
	case obj == nil:
		return owned.Unowned
	case !isNamed(obj):
		return owned.Foreign
	}
	return formatSource(obj)
}

var hubNamespace = regexp.MustCompile(`in the namespace "([^"]+)" of the hub`)

// reported records what a claim has just reported of the name of its object, if it records that.
func (c *checker) reported(claim *claimHistory, before, after *unstructured.Unstructured) {
	synced := propagation.AgentSynced(after)
	record, recorded := ownership.GetRecord(after)
	us := claim.source()
	if maps.Equal(propagation.AgentSynced(before), synced) || !recorded || claim.tampered {
		return
	}
	switch synced["reason"] {
	case fleetv1alpha1.ReasonSynced:
		at := record.Namespace
		// The status does not wait for the record.
		if other := map[string]string{targetName: movedName, movedName: targetName}[at]; record.UID == "" && c.owns(us, other) && !c.owns(us, at) {
			at = other
		}
		c.names.Reported(us, at, func(owner string) bool { return owner == us })
	case fleetv1alpha1.ReasonConflict:
		message, _ := synced["message"].(string)
		at := hubNamespace.FindStringSubmatch(message)
		c.names.Reported(us, at[1], func(owner string) bool { return owner != us && owner != owned.Unowned })
	}
}

func (c *checker) owns(owner, namespace string) bool {
	for _, o := range c.objects {
		if !o.gone && o.last.GetNamespace() == namespace && nameOwner(o.last) == owner {
			return true
		}
	}
	return false
}

// claimFor returns the claim that an object was created for.
func (c *checker) claimFor(obj *unstructured.Unstructured) *claimHistory {
	return c.claims[types.UID(obj.GetAnnotations()[fleetv1alpha1.SourceClaimUIDAnnotation])]
}

func (c *checker) objectCreated(o *objectHistory) {
	claim := c.claimFor(o.last)
	if claim == nil {
		c.fail("Every object has a claim", "%s/%s was created for no claim: %v", o.last.GetNamespace(), o.last.GetName(), o.last.GetAnnotations())
		return
	}
	for _, other := range claim.objects {
		switch {
		case !other.gone && claim.owns(other):
			c.fail("A claim has one object", "%s/%s was created beside %s/%s", o.last.GetNamespace(), o.last.GetName(), other.last.GetNamespace(), other.last.GetName())
		case other.gone && claim.recorded && !claim.consents[string(other.last.GetUID())] && !claim.consents[string(claim.last.GetUID())] &&
			!claim.tampered && !c.mayMove(claim) && !strings.HasPrefix(other.deletedBy, "manager-") &&
			(c.landing.IsZero() || c.landing.After(other.deletedAt)): // What is on its way cannot be called back.
			c.fail("A lost object is not replaced silently", "%s/%s was deleted by %s and created again", other.last.GetNamespace(), other.last.GetName(), other.deletedBy)
		}
	}
	claim.objects = append(claim.objects, o)
}

// isNamed reports whether an object names a source. Masthead releases an object by removing the name.
func isNamed(obj *unstructured.Unstructured) bool {
	return obj.GetAnnotations()[fleetv1alpha1.SourceUIDAnnotation] != ""
}

func (c *checker) objectWritten(o *objectHistory, change apiserver.Change) {
	a := change.Old.GetAnnotations()
	source, named := a[fleetv1alpha1.SourceUIDAnnotation]
	if _, still := change.New.GetAnnotations()[fleetv1alpha1.SourceUIDAnnotation]; named && !still {
		claim := c.claimFor(change.Old)
		changed := len(o.sources) > 1 // Who changed its source may release it, too.
		if claim != nil && !claim.gone && !c.mayMove(claim) && claim.last.GetDeletionTimestamp() == nil && !changed {
			c.fail("An object is kept by its claim", "%s released %s, and its claim was not deleted", change.Manager, change.Key)
		}
		return
	}
	if !named && mayAdopt(change.Old, change.New) {
		return
	}
	if writer := strings.TrimPrefix(change.Manager, fleetv1alpha1.FieldManager+"-"); !named || writer != source {
		c.fail("An object is written only for its source", "%s wrote %s of the source %q", change.Manager, change.Key, source)
	}
}

// mayAdopt reports whether an object without a source may get the one that it has afterwards: an administrator or its
// former claim has permitted it.
func mayAdopt(before, after *unstructured.Unstructured) bool {
	source, a := formatSource(after), before.GetAnnotations()
	identifier, _, _ := strings.Cut(source, "/")
	return a[fleetv1alpha1.AdoptableByAnnotation] == identifier+"/*" || a[fleetv1alpha1.ReleasedFromAnnotation] == source
}

// bindingTime is how old an object may be that is not deleted because Crossplane binds it.
const bindingTime = 10 * time.Second

func (c *checker) objectDeleted(o *objectHistory) {
	claim := c.claimFor(o.last)
	age := time.Since(o.last.GetCreationTimestamp().Time)
	if named, _, _ := unstructured.NestedString(o.last.Object, "spec", "resourceRef", "name"); named != "" && !crossplane.IsReported(o.last) && age < bindingTime {
		c.fail("Nothing is deleted while Crossplane binds it", "%s/%s is %s old", o.last.GetNamespace(), o.last.GetName(), age)
	}
	switch {
	case len(o.sources) > 1: // Who changed its source may delete it, too.
	case claim == nil:
		if !isNamed(o.last) || !c.mayGo(o, nil) {
			c.fail("Nothing is deleted that a claim needs", "%s/%s is no claim's: %v", o.last.GetNamespace(), o.last.GetName(), o.last.GetAnnotations())
		}
	case !claim.gone && !c.mayMove(claim) && claim.last.GetDeletionTimestamp() == nil:
		c.fail("Nothing is deleted that a claim needs", "%s/%s was deleted, and its claim was not", o.last.GetNamespace(), o.last.GetName())
	case claim.lost:
		if !c.mayGo(o, claim) {
			c.fail("What a restored cluster may still claim is kept", "%s/%s was deleted", o.last.GetNamespace(), o.last.GetName())
		}
	case claim.keptWhenDeleted && !claim.tampered && !c.mayMove(claim):
		c.fail("Nothing is deleted that is kept", "%s/%s was deleted against the policy of its claim", o.last.GetNamespace(), o.last.GetName())
	}
}

func (c *checker) clusterChanged(cluster *workload, change apiserver.Change) {
	switch change.Key.GroupResource {
	case namespaces:
		c.namespaceChanged(cluster, change)
	case claims:
		c.claimChanged(cluster, change)
	case secrets:
		c.secretChanged(cluster, change)
	case crds, xrds, compositions:
		c.claimsDefinitionChanged(cluster, change)
		c.copyChanged(cluster, change)
	case subnets:
		c.referrerChanged(cluster, change)
	}
	c.sourceChanged(cluster, change)
}

// mayGo reports whether Masthead may delete an object that was created for no claim, or for a lost one: for a later
// claim of its source that goes or moves, or may record it.
func (c *checker) mayGo(o *objectHistory, lost *claimHistory) bool {
	for _, claim := range c.claims {
		if lost != nil && claim.made.Before(lost.made) {
			continue
		}
		goes := claim.gone && !claim.lost || claim.last.GetDeletionTimestamp() != nil
		if claim.owns(o) && (goes || claim.tampered || c.mayMove(claim)) {
			return true
		}
	}
	return false
}

func (c *checker) namespaceChanged(cluster *workload, change apiserver.Change) {
	name := cluster.identifier + "/" + change.Key.Name
	if c.targets[name] == nil {
		c.targets[name] = map[string]bool{}
	}
	if change.New != nil {
		c.targets[name][namespaceTarget(change.New)] = true
	}
	for _, claim := range c.claims {
		if claim.cluster == cluster && claim.namespace == change.Key.Name {
			claim.consentsToMove = claim.consentsToMove || consentsToMove(change.New)
		}
	}
}

// mayMove reports whether the object of a claim may be deleted and created elsewhere.
func (c *checker) mayMove(claim *claimHistory) bool {
	return claim.consentsToMove && len(c.targets[claim.source()]) > 1
}

func consentsToMove(ns *unstructured.Unstructured) bool {
	return ns != nil && ns.GetAnnotations()[fleetv1alpha1.OnTargetChangeAnnotation] == fleetv1alpha1.OnTargetChangeRecreate
}

func (c *checker) claimChanged(cluster *workload, change apiserver.Change) {
	obj := change.New
	if obj == nil {
		obj = change.Old
	}
	claim := c.claims[obj.GetUID()]
	if claim == nil {
		claim = &claimHistory{cluster: cluster, made: time.Now(), namespace: obj.GetNamespace()}
		claim.orphaned, claim.disabled = c.orphans || !c.classIsKnown(), c.disables || !c.classIsKnown()
		claim.consents = map[string]bool{}
		if ns := cluster.server.Locked(key(namespaces, "", claim.namespace)); ns != nil {
			claim.consentsToMove, claim.namespaceUID = consentsToMove(ns), ns.GetUID()
		}
		c.claims[obj.GetUID()] = claim
	}
	claim.last = obj
	claim.gone = change.New == nil
	claim.consents[obj.GetAnnotations()[fleetv1alpha1.RecreateAnnotation]] = true
	record, _ := ownership.GetRecord(obj)
	claim.recorded = claim.recorded || record.UID != "" || crossplane.IsReported(obj)
	if change.Old == nil {
		if isAgent(change) {
			c.fail("Only users create claims", "%s created %s in %s", change.Manager, change.Key, cluster.identifier)
		}
		return
	}
	if isAgent(change) && change.New != nil &&
		controllerutil.ContainsFinalizer(change.Old, userFinalizer) != controllerutil.ContainsFinalizer(change.New, userFinalizer) {
		c.fail("A user's finalizer is theirs", "%s changed that of %s in %s", change.Manager, change.Key, cluster.identifier)
	}
	if change.New != nil && isAgent(change) {
		c.reported(claim, change.Old, change.New)
	}
	claim.justProtected = change.New != nil && isProtected(change.New) && !isProtected(change.Old)
	deleted := change.New == nil || change.New.GetDeletionTimestamp() != nil
	if deleted && change.Old.GetDeletionTimestamp() == nil {
		claim.keptWhenDeleted = isProtected(change.Old) && (keepsObject(change.Old) || c.orphans && c.classIsKnown())
	}
	if !isAgent(change) && change.Old.GetAnnotations()[fleetv1alpha1.HubObjectAnnotation] != obj.GetAnnotations()[fleetv1alpha1.HubObjectAnnotation] {
		claim.tampered = true
	}
	released := isProtected(change.Old) && (change.New == nil || !isProtected(change.New))
	switch {
	case !released:
	case !isAgent(change):
		claim.tampered, claim.slipped = claim.tampered || !change.Removed, claim.slipped || change.Removed
	case released && !deleted:
		claim.recorded = false // The class is Disabled.
	case released && !claim.tampered:
		c.claimReleased(claim)
	}
}

// keepsObject reports whether a claim asks to keep its object when it is deleted.
func keepsObject(claim *unstructured.Unstructured) bool {
	return claim.GetAnnotations()[fleetv1alpha1.DeletionPolicyAnnotation] == "Orphan"
}

// classIsKnown reports whether every process of the hub has received the class as it is.
func (c *checker) classIsKnown() bool {
	for _, p := range c.w.processes {
		if p.hub == c.w.hub && !slices.ContainsFunc(c.w.hub.Watches(), func(watch *apiserver.Watch) bool {
			return watch.Client == p.name && watch.Resource == classes && watch.Pending() == 0
		}) {
			return false
		}
	}
	return true
}

func isProtected(claim *unstructured.Unstructured) bool {
	return slices.ContainsFunc(claim.GetFinalizers(), func(f string) bool { return strings.HasPrefix(f, fleetv1alpha1.RequirementFinalizer) })
}

// claimReleased checks a claim whose finalizer Masthead has removed.
func (c *checker) claimReleased(claim *claimHistory) {
	for _, o := range claim.objects {
		if !o.gone && claim.owns(o) && !claim.disabled {
			c.fail("A claim is released after its object", "%s/%s still exists and names it", o.last.GetNamespace(), o.last.GetName())
		}
	}
	for _, pending := range c.w.pendingCreations() {
		if strings.Contains(string(pending.body), string(claim.last.GetUID())) && !claim.disabled {
			c.fail("A claim is released when nothing can be created for it", "%s can still be executed", pending.label)
		}
	}
}

// pendingCreations returns the requests that may still create a claim's object in the hub.
func (w *world) pendingCreations() []*call {
	var out []*call
	isCreation := func(c *call) bool {
		return c.server == w.hub.Server && c.request.Method == http.MethodPatch && strings.Contains(c.label, claimPlural) && !strings.Contains(c.label, "dry run") &&
			strings.Contains(string(c.body), `"resourceVersion":"0"`)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.late {
		if isCreation(c) && time.Now().Before(c.landsUntil) {
			out = append(out, c)
		}
	}
	return out
}

// secretChanged checks that a password reaches only the namespace that it was made for.
func (c *checker) secretChanged(cluster *workload, change apiserver.Change) {
	if change.Old != nil && isAgent(change) && change.Old.GetAnnotations()[index.HubSecretVersionAnnotation] == "" {
		c.fail("A user's Secret stays", "%s wrote %s in %s", change.Manager, change.Key, cluster.identifier)
	}
	if change.New == nil {
		return
	}
	encoded, _, _ := unstructured.NestedString(change.New.Object, "data", "password")
	password, err := base64.StdEncoding.DecodeString(encoded)
	if encoded == "" || err != nil {
		return
	}
	parts := strings.Split(string(password), "/") // See newPassword.
	from := c.objects[types.UID(parts[0])]
	// A copy for a claim that is gone without the watch knowing is collected at once.
	madeFor, inherited := c.claims[types.UID(parts[1])], false
	for _, r := range change.New.GetOwnerReferences() {
		owner := c.claims[r.UID]
		inherited = owner != nil && !owner.gone && madeFor != nil && owner.namespaceUID != madeFor.namespaceUID && len(from.sources) == 1
	}
	if !from.sources[cluster.identifier+"/"+change.Key.Namespace] || inherited {
		c.fail("A password reaches only its owner", "that of %s is in %s/%s", password, cluster.identifier, change.Key.Namespace)
	}
}

// settled checks the world when all faults have stopped and everything is at rest.
func (c *checker) settled() {
	if err := c.names.Check(); err != nil {
		c.fail("Names are owned like locks", "%v", err)
	}
	if c.w.runs.discovery {
		c.copiesSettled()
	}
	if c.w.runs.references {
		c.referencesSettled()
	}
	if c.w.runs.agent {
		c.orphansSettled()
	}
	for uid, claim := range c.claims {
		name := claim.source()
		if claim.gone {
			if claim.tampered || claim.lost || claim.slipped && (claim.keptWhenDeleted || len(claim.witnesses) == 0) {
				continue // It is kept, or went without Masthead: orphansSettled.
			}
			// A claim of that name takes over what names its source. What a stray hides is counted as an orphan.
			for _, o := range claim.objects {
				kept := !claim.owns(o) || claim.orphaned || claim.disabled || c.hasStray(o) || isTakenOver(claim, o.last.GetNamespace())
				if !o.gone && o.last.GetDeletionTimestamp() == nil && !kept {
					c.fail("No object is left behind", "the claim %s (%s) is gone, and %s/%s is not", name, uid, o.last.GetNamespace(), o.last.GetName())
				}
			}
			continue
		}
		if claim.last.GetDeletionTimestamp() != nil {
			c.fail("A deleted claim goes", "%s stays: %v", name, propagation.AgentSynced(claim.last))
			continue
		}
		c.claimSettled(name, claim)
	}
}

// slips notes which processes watch the claims of a cluster when one is about to be deleted in spite of its finalizer.
func (c *checker) slips(cluster *workload, uid types.UID) {
	c.claims[uid].witnesses = map[string]bool{}
	for _, watch := range cluster.server.Watches() {
		if watch.Resource == claims {
			c.claims[uid].witnesses[watch.Client] = true
		}
	}
}

// forgets notes that a process will not be shown, or has forgotten, what has happened in clusters so far.
func (c *checker) forgets(process string, where ...*workload) {
	for _, claim := range c.claims {
		if slices.Contains(where, claim.cluster) {
			delete(claim.witnesses, process)
		}
	}
}

// expires notes that a server will not show any more what it has not shown yet.
func (c *checker) expires(s *apiserver.Server) {
	for _, cluster := range c.w.clusters {
		for _, p := range c.w.processes {
			shown := slices.ContainsFunc(s.Watches(), func(watch *apiserver.Watch) bool {
				return watch.Client == p.name && watch.Resource == claims && watch.Pending() == 0
			})
			if cluster.server == s && !shown {
				c.forgets(p.name, cluster)
			}
		}
	}
}

// disconnects notes that a process that loses a watch lists again, and is not shown what the watch has not.
func (c *checker) disconnects(s *apiserver.Server, watch *apiserver.Watch) {
	for _, cluster := range c.w.clusters {
		if cluster.server == s && watch.Resource == claims && watch.Pending() > 0 && watch.IsBrief() {
			c.forgets(watch.Client, cluster)
		}
	}
}

// orphansSettled checks that what was created for claims that went without Masthead, and for lost ones, is counted.
func (c *checker) orphansSettled() {
	counted := map[string]int{}
	families, err := c.w.hub.holder.metrics.Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == "masthead_agent_orphans" && label.GetName() == "cluster_name" {
					counted[label.GetValue()] = int(metric.GetGauge().GetValue())
				}
			}
		}
	}
	for _, cluster := range c.w.clusters {
		orphans := map[string]bool{}
		for _, obj := range c.w.hub.List(claims) {
			a := obj.GetAnnotations()
			if a[fleetv1alpha1.SourceUIDAnnotation] != cluster.identifier {
				continue
			}
			from := key(claims, a[fleetv1alpha1.SourceNamespaceAnnotation], obj.GetName())
			if cluster.server.Get(from) == nil {
				orphans[from.String()] = true
			}
		}
		if counted[cluster.identifier] != len(orphans) {
			c.fail("What has no claim is counted",
				"%d orphans of %s are counted, and %v are there", counted[cluster.identifier], cluster.identifier, orphans)
		}
	}
}

// isTakenOver reports whether a later claim of the name of one that is gone has its object in a namespace of the hub.
// What is left of one that slipped away while no watch ran is a stray for a later one with another target.
func isTakenOver(gone *claimHistory, namespace string) bool {
	claim := gone.cluster.server.Get(key(claims, gone.namespace, claimName))
	if claim == nil || gone.slipped {
		return claim != nil
	}
	record, _ := ownership.GetRecord(claim)
	return record.Namespace == namespace || namespaceTarget(gone.cluster.server.Get(key(namespaces, "", gone.namespace))) == namespace
}

// hasStray reports whether an object that Masthead did not create ever named the same source as another.
func (c *checker) hasStray(o *objectHistory) bool {
	for _, other := range c.objects {
		if !other.byMasthead && formatSource(other.last) == formatSource(o.last) {
			return true
		}
	}
	return false
}

func formatSource(obj *unstructured.Unstructured) string {
	a := obj.GetAnnotations()
	return a[fleetv1alpha1.SourceUIDAnnotation] + "/" + a[fleetv1alpha1.SourceNamespaceAnnotation]
}

func (c *checker) claimSettled(name string, claim *claimHistory) {
	synced := propagation.AgentSynced(claim.last)
	live, target := c.live(claim), claimTarget(claim)
	switch synced["reason"] {
	case fleetv1alpha1.ReasonSynced:
		if live == nil {
			c.fail("A synchronised claim has its object", "%s has none", name)
			return
		}
		want, _, _ := unstructured.NestedString(claim.last.Object, "spec", "version")
		if have, _, _ := unstructured.NestedString(live.last.Object, "spec", "version"); have != want {
			c.fail("A synchronised claim has its object", "%s has version %s, and its object %s", name, want, have)
		}
		bound, _, _ := unstructured.NestedString(live.last.Object, "spec", "resourceRef", "name")
		if shown, _, _ := unstructured.NestedString(claim.last.Object, "spec", "resourceRef", "name"); shown != bound {
			c.fail("A synchronised claim shows what its object is bound to", "%s shows %q instead of %q", name, shown, bound)
		}
		up, _, _ := unstructured.NestedString(live.last.Object, "status", "address")
		if down, _, _ := unstructured.NestedString(claim.last.Object, "status", "address"); up != down {
			c.fail("A synchronised claim shows its object's status", "%s shows %q instead of %q", name, down, up)
		}
		c.secretSettled(name, claim, live)
	case fleetv1alpha1.ReasonConflict, fleetv1alpha1.ReasonNamespaceRecreated:
		ns := claim.cluster.server.Get(key(namespaces, "", claim.namespace))
		if live != nil && live.last.GetNamespace() == target && live.last.GetAnnotations()[fleetv1alpha1.SourceNamespaceUIDAnnotation] == string(ns.GetUID()) {
			c.fail("A conflict is one", "%s has an object", name)
		}
		if holder := c.w.hub.Get(key(claims, target, claimName)); holder == nil {
			c.fail("A conflict is one", "the name of %s is free", name)
		}
	case fleetv1alpha1.ReasonTargetNamespaceChanged:
		// A restored claim finds its object by the UID that it had before.
		if !claim.restored && (live == nil || live.last.GetNamespace() == target) {
			c.fail("An object that stays is elsewhere", "%s has none outside %s", name, target)
		}
	case fleetv1alpha1.ReasonSecretConflict:
		if s := claim.cluster.server.Get(key(secrets, claim.namespace, secretName)); s == nil || len(s.GetOwnerReferences()) > 0 {
			c.fail("A conflict is one", "no Secret is in the way of %s", name)
		}
	case fleetv1alpha1.ReasonHubObjectDeleted:
		// A forged record can be of an object that was another claim's, and is lost.
		if live != nil && !claim.tampered {
			c.fail("A loss is one", "%s has an object", name)
		}
		if !claim.tampered && !claim.restored && !c.wasTaken(claim) {
			c.fail("A loss is one", "only Masthead deleted objects of %s", name)
		}
	default:
		c.fail("Every claim ends as if nothing had happened", "%s has the condition %v", name, synced)
	}
}

// wasTaken reports whether another than Masthead deleted an object of the claim's source since the claim exists, or
// took it over.
func (c *checker) wasTaken(claim *claimHistory) bool {
	for _, o := range c.objects {
		wasDeleted := !o.deletedAt.Before(claim.made) && !strings.HasPrefix(o.deletedBy, "manager-")
		if o.sources[claim.source()] && (wasDeleted || !claim.owns(o)) {
			return true
		}
	}
	return false
}

// claimTarget returns the namespace of the hub that a claim's object shall be in.
func claimTarget(claim *claimHistory) string {
	ns := claim.cluster.server.Get(key(namespaces, "", claim.namespace))
	return namespaceTarget(ns)
}

func namespaceTarget(ns *unstructured.Unstructured) string {
	return cmp.Or(ns.GetAnnotations()[fleetv1alpha1.TargetNamespaceAnnotation], targetName)
}

// live returns the object that is the claim's: one that was created for it, or one that names its source where it was
// recorded or at its target.
func (c *checker) live(claim *claimHistory) *objectHistory {
	isSource := func(o *objectHistory) bool { return !o.gone && claim.owns(o) }
	for _, o := range claim.objects {
		if isSource(o) {
			return o
		}
	}
	record, _ := ownership.GetRecord(claim.last)
	for _, at := range []string{record.Namespace, claimTarget(claim)} {
		for _, o := range c.objects {
			if isSource(o) && o.last.GetNamespace() == at {
				return o
			}
		}
	}
	return nil
}

func (c *checker) secretSettled(name string, claim *claimHistory, live *objectHistory) {
	up := c.w.hub.Get(key(secrets, live.last.GetNamespace(), secretName))
	if up == nil || len(up.GetOwnerReferences()) == 0 || up.GetOwnerReferences()[0].UID != live.last.GetUID() {
		return
	}
	down := claim.cluster.server.Get(key(secrets, claim.namespace, secretName))
	switch {
	case down == nil:
		c.fail("A synchronised claim has its Secret", "%s has none", name)
	case !reflect.DeepEqual(down.Object["data"], up.Object["data"]):
		c.fail("A synchronised claim has its Secret", "that of %s is not as in the hub", name)
	}
}
