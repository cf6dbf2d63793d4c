import Basics

/// A name from outside as an error's sentence shows it.
package func quoted(_ name: String) -> String { HostileText.quoted(name) }
