"""Qlik Replicate and Qlik Talend Data Integration."""
