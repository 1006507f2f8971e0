
;
x0Placeholder*
dtype0*
shape:
%

Reciprocal
Reciprocalx0*
T0
)
IdentityIdentity
Reciprocal*
T0