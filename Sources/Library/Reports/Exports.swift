// `import Reports` offers the explanation of every term too. All files of this module see it.
@_exported public import Explanations
