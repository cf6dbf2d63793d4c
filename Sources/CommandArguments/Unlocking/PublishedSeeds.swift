import BundledFixtures

/// Seeds that everybody has: with the name of a device they give the published hardware key.
package enum PublishedSeeds {
  package static let all = [BundledFixtures.seed]
}
