"""The human check of translations (BEIR-NL, section 3.1): a sample, a page to label it on, and the rates.

``sample`` draws items of every dataset into a sheet; annotators label them on the page that ``serve`` opens;
``report`` turns sheet and labels into rates of major and minor errors and the annotators' agreement.
"""
